"""Write the generated files of `clients/typescript`."""

from tests.generators.typescript import generate

generate()
