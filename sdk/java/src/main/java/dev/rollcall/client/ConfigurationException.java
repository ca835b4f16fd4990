package dev.rollcall.client;

/**
 * A context, an address or a file is unusable. The message says which of them, and where it was set.
 */
public final class ConfigurationException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  ConfigurationException(String message) {
    super(message);
  }

  ConfigurationException(String message, Throwable cause) {
    super(message, cause);
  }
}
