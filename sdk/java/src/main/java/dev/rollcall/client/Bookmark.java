package dev.rollcall.client;

/**
 * A place in the log: after what a resume token stands for, and after the event of a revision. A message of the log has
 * several events and one token for all of them; within it the place is the token of the message before, and the
 * revision of the last event that was handed out.
 */
record Bookmark(String token, long revision) {
  @Override
  public String toString() {
    return token + "@" + Long.toUnsignedString(revision);
  }

  /** Reads what toString() wrote, or a bare resume token. Throws IllegalArgumentException for what is neither. */
  static Bookmark parse(String text) {
    int at = text.lastIndexOf('@');
    if (at < 0) return new Bookmark(text, 0);
    String revision = text.substring(at + 1);
    try {
      if (revision.matches("[0-9]+")) return new Bookmark(text.substring(0, at), Long.parseUnsignedLong(revision));
    } catch (NumberFormatException tooLong) {
      // It is told below.
    }
    throw new IllegalArgumentException("\"" + text + "\" is not a bookmark");
  }
}
