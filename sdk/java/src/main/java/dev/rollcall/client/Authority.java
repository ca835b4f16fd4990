package dev.rollcall.client;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/** The authority of a server's certificate that is known by its fingerprint alone. */
final class Authority {
  private static final int TIMEOUT_MS = 10_000;
  private static final int MOST_BYTES = 64 * 1024;
  private static final Pattern WRITTEN = Pattern.compile("(?i)(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)");
  private static final Pattern BLOCK =
      Pattern.compile("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----");
  private static final Pattern NAME = Pattern.compile("(?=.*[A-Za-z])[A-Za-z0-9.-]+");

  private Authority() {}

  /** Reads a fingerprint, as Rollcall writes it or as OpenSSL does. Throws ConfigurationException. */
  static String parseFingerprint(String text) {
    Matcher written = WRITTEN.matcher(text.strip());
    String digits = written.matches() ? written.group(1).replace(":", "").toLowerCase(Locale.ROOT) : "";
    if (digits.length() == 64) return "sha256:" + digits;
    throw new ConfigurationException(
        "\"" + text + "\" is no fingerprint: sha256: and 64 hexadecimal digits are needed");
  }

  /**
   * Fetches the authority of this fingerprint from a server that is not trusted yet, as PEM. No credentials are sent,
   * and nothing that the server shows in the handshake counts: it proves itself by the next connection, which has to be
   * verified with this authority alone. Throws RollcallException, and ConfigurationException for another one.
   */
  static String fetch(Address address, String serverName, String fingerprint) {
    List<String> others = new ArrayList<>();
    Matcher blocks = BLOCK.matcher(download(address, serverName));
    while (blocks.find()) {
      String found = fingerprintOf(blocks.group());
      if (fingerprint.equals(found)) return blocks.group() + "\n";
      if (found != null) others.add(found);
    }
    throw new ConfigurationException(
        "the authority of " + address.baseUrl() + " has the fingerprint " + String.join(", ", others) + ", not "
            + fingerprint + ": take the one that `rollcall token create` shows, or find out what answers there");
  }

  /** Null for what is no certificate. */
  private static String fingerprintOf(String pem) {
    try {
      byte[] bytes = pem.getBytes(StandardCharsets.US_ASCII);
      CertificateFactory factory = CertificateFactory.getInstance("X.509");
      Certificate certificate = factory.generateCertificate(new ByteArrayInputStream(bytes));
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded());
      return "sha256:" + HexFormat.of().formatHex(digest);
    } catch (GeneralSecurityException none) {
      return null;
    }
  }

  private static String download(Address address, String serverName) {
    String name = serverName == null ? address.host() : serverName;
    try (Socket plain = new Socket()) {
      plain.connect(new InetSocketAddress(address.host(), address.port()), TIMEOUT_MS);
      SSLSocket socket = (SSLSocket) context().getSocketFactory().createSocket(plain, name, address.port(), true);
      socket.setSoTimeout(TIMEOUT_MS);
      SSLParameters parameters = socket.getSSLParameters();
      if (NAME.matcher(name).matches()) parameters.setServerNames(List.of(new SNIHostName(name)));
      socket.setSSLParameters(parameters);
      String request = "GET /ca.pem HTTP/1.0\r\nhost: " + hostHeader(name, address.port()) + "\r\n\r\n";
      socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
      return answered(read(socket.getInputStream()));
    } catch (IOException | GeneralSecurityException cause) {
      String message = "cannot fetch the authority of " + address.baseUrl() + ": " + cause.getMessage();
      throw Failures.unreachable(message, cause);
    }
  }

  private static String read(InputStream from) throws IOException {
    byte[] bytes = from.readNBytes(MOST_BYTES + 1);
    if (bytes.length > MOST_BYTES) throw new IOException("its answer is too long");
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }

  private static String answered(String answer) throws IOException {
    String[] words = answer.split(" ", 3);
    if (words.length == 3 && words[0].startsWith("HTTP/") && words[1].equals("200")) return words[2];
    throw new IOException("it hands out none; name the authority's file instead");
  }

  private static String hostHeader(String name, int port) {
    return (name.contains(":") ? "[" + name + "]" : name) + ":" + port;
  }

  private static SSLContext context() throws GeneralSecurityException {
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, new TrustManager[] {new Unchecked()}, null);
    return context;
  }

  /** Without an authority there is nothing to check with. What comes is public, and is checked by its fingerprint. */
  private static final class Unchecked implements X509TrustManager {
    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) {}

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }
}
