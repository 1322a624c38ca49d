"""The signals that ask a process to end what it does and stop."""

import signal


def stop_signals() -> list[signal.Signals]:
    """Return the signals of Ctrl-C, of a service manager's stop, and of a terminal that closes.

    The last is left out for a process that was started to outlive its terminal (`nohup`).
    """
    usual = [signal.SIGINT, signal.SIGTERM]
    return usual if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*usual, signal.SIGHUP]
