"""Known failures of memory servers, case by case: each test proves that Esker does not have one of them."""
