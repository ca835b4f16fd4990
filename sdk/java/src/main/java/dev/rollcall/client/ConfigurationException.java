package dev.rollcall.client;

/** A context, an address or a file that cannot be used; the message says which, and where it came from. */
public final class ConfigurationException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  ConfigurationException(String message) {
    super(message);
  }

  ConfigurationException(String message, Throwable cause) {
    super(message, cause);
  }
}
