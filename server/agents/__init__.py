"""What each agent CLI writes and reads."""
