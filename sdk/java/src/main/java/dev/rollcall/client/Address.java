package dev.rollcall.client;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.regex.Pattern;

/** One service's address. {@code host} has no brackets. */
record Address(String host, int port, boolean isTls) {
  private static final Pattern SCHEME = Pattern.compile("^https?://.*", Pattern.CASE_INSENSITIVE);
  private static final Pattern LOOPBACK = Pattern.compile("localhost|::1|127(\\.\\d{1,3}){3}");

  /** Reads HOST:PORT or a URL. Throws ConfigurationException, which names the source. */
  static Address parse(String text, String source, boolean isTls) {
    boolean hasScheme = SCHEME.matcher(text).matches();
    try {
      URI url = new URI(hasScheme ? text : (isTls ? "https://" : "http://") + text).parseServerAuthority();
      boolean hasPath = url.getPath() != null && !url.getPath().isEmpty() && !url.getPath().equals("/");
      boolean isPlain = url.getHost() != null && url.getUserInfo() == null && url.getQuery() == null;
      boolean isPort = url.getPort() >= 0 ? url.getPort() <= 65_535 : hasScheme;
      // Without a port, HOST would silently mean port 80, where nothing of ours listens.
      if (isPlain && !hasPath && url.getFragment() == null && isPort) {
        boolean isSecure = url.getScheme().equalsIgnoreCase("https");
        String host = url.getHost().replaceAll("^\\[(.*)]$", "$1").toLowerCase(java.util.Locale.ROOT);
        return new Address(host, url.getPort() >= 0 ? url.getPort() : isSecure ? 443 : 80, isSecure);
      }
    } catch (URISyntaxException malformed) {
      // It is told below.
    }
    throw new ConfigurationException(
        "cannot use \"" + text + "\" from " + source + " as an address: HOST:PORT or a URL is needed");
  }

  /** For example "https://rollcall.example:7700", always with its port. */
  String baseUrl() {
    return (isTls ? "https://" : "http://") + authority();
  }

  /** HOST:PORT, an IPv6 address in brackets. */
  String authority() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }

  /** Whether calls to it never leave this machine. */
  boolean isLoopback() {
    return LOOPBACK.matcher(host).matches();
  }
}
