"""Ask the control plane who the caller is.

Without arguments, the client finds the control plane and the token as the command line does. With arguments, it
trusts the authority with the given fingerprint.

Usage: python whoami.py [SERVER FINGERPRINT]
"""

import sys

from rollcall import Client


def main(server: str | None = None, fingerprint: str | None = None) -> None:
    """Print the actor, for example "token:ops"."""
    with Client(server, ca_fingerprint=fingerprint) as client:
        print(client.access.who_am_i().actor)


if __name__ == "__main__":
    main(*sys.argv[1:])
