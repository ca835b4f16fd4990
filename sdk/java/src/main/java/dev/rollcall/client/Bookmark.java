package dev.rollcall.client;

/**
 * A position in the event log: after the position of a resume token, and after the event with a revision. A message of
 * the log contains several events but only one token. So the position after an event within a message consists of the
 * previous message's token and the event's revision.
 */
record Bookmark(String token, long revision) {
  @Override
  public String toString() {
    return token + "@" + Long.toUnsignedString(revision);
  }

  /** Parses the result of toString(), or a bare resume token. Throws IllegalArgumentException for anything else. */
  static Bookmark parse(String text) {
    int at = text.lastIndexOf('@');
    if (at < 0) return new Bookmark(text, 0);
    String revision = text.substring(at + 1);
    try {
      if (revision.matches("[0-9]+")) return new Bookmark(text.substring(0, at), Long.parseUnsignedLong(revision));
    } catch (NumberFormatException tooLong) {
      // The failure is reported below.
    }
    throw new IllegalArgumentException("\"" + text + "\" is not a bookmark");
  }
}
