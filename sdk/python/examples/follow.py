"""Follow the log. Prints each event exactly once, across restarts of the control plane and of this program.

Usage: python follow.py SERVER TOKEN_FILE [BOOKMARK_FILE]
"""

import sys
from pathlib import Path

from rollcall.events.v1 import events_pb2

from rollcall import Client


def main(server: str, token_file: str, bookmark_file: str | None = None) -> None:
    """Print events until the program is stopped."""
    file = None if bookmark_file is None else Path(bookmark_file)
    saved = file.read_text() if file is not None and file.exists() else None
    request = events_pb2.WatchEventsRequest(from_beginning=True)
    with Client(server, token_file=token_file) as client, client.watch_events(request, bookmark=saved) as watch:
        for event in watch:
            print(event.revision, event.type, event.subject, flush=True)
            # Save the bookmark together with the result of handling its event. A program that stops between the
            # two handles the event again.
            if file is not None:
                file.write_text(watch.bookmark or "")


if __name__ == "__main__":
    main(*sys.argv[1:])
