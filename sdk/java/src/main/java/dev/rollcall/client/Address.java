package dev.rollcall.client;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The address of one service. {@code host} is in lower case and without brackets. */
record Address(String host, int port, boolean isTls) {
  private static final Pattern SCHEME = Pattern.compile("^([A-Za-z][A-Za-z0-9+.-]*)://");
  private static final Pattern BRACKETED = Pattern.compile("\\[([^\\]]*)\\](?::(.*))?");
  private static final Pattern NAMED = Pattern.compile("([^:]*)(?::([^:]*))?");
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*\\.?");
  private static final Pattern NUMERIC = Pattern.compile("(^|\\.)([0-9]+|0[xX][0-9A-Fa-f]*)\\.?$");
  private static final String BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  private static final Pattern IPV4 = Pattern.compile("(" + BYTE + "\\.){3}" + BYTE);
  private static final Pattern LOOPBACK = Pattern.compile("localhost|::1|127(\\.\\d{1,3}){3}");
  private static final int LONGEST_HOST = 253;

  /** Parses HOST:PORT or a URL. Throws a ConfigurationException that names the source. */
  static Address parse(String text, String source, boolean isTls) {
    try {
      return read(text.strip(), isTls);
    } catch (IllegalArgumentException unread) {
      String why = unread.getMessage() + "; HOST:PORT or a URL such as https://rollcall.example:7700 is needed";
      throw new ConfigurationException("cannot use \"" + shown(text) + "\" from " + source + " as an address: " + why);
    }
  }

  private static Address read(String text, boolean isTls) {
    Matcher named = SCHEME.matcher(text);
    boolean hasScheme = named.find();
    String scheme = hasScheme ? named.group(1).toLowerCase(Locale.ROOT) : "";
    String rest = hasScheme ? text.substring(named.end()) : text;
    int slash = rest.indexOf('/');
    String authority = slash < 0 ? rest : rest.substring(0, slash);
    if (hasScheme && !scheme.equals("http") && !scheme.equals("https")) throw no("its scheme is not http or https");
    if (rest.contains("@")) throw no("it must have no user and no password");
    if (rest.contains("?") || rest.contains("#")) throw no("it must have no query and no fragment");
    if (slash >= 0 && slash < rest.length() - 1) throw no("it must have no path");
    Matcher bracketed = BRACKETED.matcher(authority);
    boolean isIpv6 = bracketed.matches();
    Matcher parts = isIpv6 ? bracketed : NAMED.matcher(authority);
    if (!isIpv6 && !parts.matches()) throw no("an IPv6 address needs brackets, as in [::1]:7700");
    String host = parts.group(1).toLowerCase(Locale.ROOT);
    if (isIpv6) checkIpv6(host);
    else checkName(host);
    boolean isSecure = hasScheme ? scheme.equals("https") : isTls;
    String port = parts.group(2);
    // Refuse HOST without a port. It would silently mean port 80, where no Rollcall service listens.
    if (port == null && !hasScheme) throw no("it has no port");
    int number = port == null ? (isSecure ? 443 : 80) : port.matches("[0-9]{1,5}") ? Integer.parseInt(port) : 0;
    if (number < 1 || number > 65_535) throw no("its port must be from 1 to 65535");
    return new Address(host, number, isSecure);
  }

  private static void checkIpv6(String host) {
    if (host.contains("%")) throw no("an IPv6 address cannot have a zone here");
    try {
      new URI("http://[" + host + "]/").parseServerAuthority();
    } catch (URISyntaxException malformed) {
      throw no("its IPv6 address is invalid");
    }
    if (!host.contains(":")) throw no("its IPv6 address is invalid");
  }

  private static void checkName(String host) {
    if (host.isEmpty()) throw no("it has no host");
    if (!host.matches("[ -~]*")) throw no("its host is not in ASCII: write a name of another script as xn--...");
    if (host.length() > LONGEST_HOST || !NAME.matcher(host).matches()) throw no("its host is invalid");
    // Refuse a name whose last part is a number, unless it is a valid IP address. Programs differ in how they parse
    // such a name as an address.
    if (NUMERIC.matcher(host).find() && !IPV4.matcher(host).matches()) throw no("its IPv4 address is invalid");
  }

  /** The message does not repeat the address, which may contain a password. */
  private static IllegalArgumentException no(String reason) {
    return new IllegalArgumentException(reason);
  }

  /** The address without any part that may be a password or a token. */
  private static String shown(String text) {
    String stripped = text.strip();
    Matcher named = SCHEME.matcher(stripped);
    String scheme = named.find() ? named.group() : "";
    int at = stripped.lastIndexOf('@');
    String withoutUser = at < 0 ? stripped : scheme + "***" + stripped.substring(at);
    return withoutUser.replaceFirst("(?s)[?#].*", "");
  }

  /** Returns a URL such as "https://rollcall.example:7700", always with a port. */
  String baseUrl() {
    return (isTls ? "https://" : "http://") + authority();
  }

  /** HOST:PORT, with an IPv6 address in brackets. */
  String authority() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }

  /** Whether the address is on this machine, so that calls to it never leave the machine. */
  boolean isLoopback() {
    return LOOPBACK.matcher(host).matches();
  }
}
