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

/** Fetches the authority of a server's certificate, given only its fingerprint. */
final class Authority {
  private static final int TIMEOUT_MS = 10_000;
  private static final int MOST_BYTES = 64 * 1024;
  private static final Pattern WRITTEN = Pattern.compile("(?i)(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)");
  private static final Pattern BLOCK =
      Pattern.compile("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----");
  private static final Pattern NAME = Pattern.compile("(?=.*[A-Za-z])[A-Za-z0-9.-]+");

  private Authority() {}

  /** Parses a fingerprint in the format of Rollcall or OpenSSL. Throws ConfigurationException. */
  static String parseFingerprint(String text) {
    Matcher written = WRITTEN.matcher(text.strip());
    String digits = written.matches() ? written.group(1).replace(":", "").toLowerCase(Locale.ROOT) : "";
    if (digits.length() == 64) return "sha256:" + digits;
    throw new ConfigurationException(
        "\"" + text + "\" is not a fingerprint; expected sha256: and 64 hexadecimal digits");
  }

  /**
   * Fetches the authority with this fingerprint, as PEM, from a server that is not trusted yet. Sends no credentials
   * and does not trust the handshake. The server must prove its identity on the next connection, which trusts only this
   * authority. Throws RollcallException, and ConfigurationException for a different authority.
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
            + fingerprint + ": use the one that `rollcall token create` shows, or find out which server answers there");
  }

  /** The fingerprint; null if the text is not a certificate. */
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
    if (bytes.length > MOST_BYTES) throw new IOException("the response is too long");
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }

  private static String answered(String answer) throws IOException {
    String[] words = answer.split(" ", 3);
    if (words.length == 3 && words[0].startsWith("HTTP/") && words[1].equals("200")) return words[2];
    throw new IOException("the server serves none; use the authority's file instead");
  }

  private static String hostHeader(String name, int port) {
    return (name.contains(":") ? "[" + name + "]" : name) + ":" + port;
  }

  private static SSLContext context() throws GeneralSecurityException {
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, new TrustManager[] {new Unchecked()}, null);
    return context;
  }

  /**
   * Accepts any certificate. The server cannot be verified before its authority is known. The response is public, and
   * its fingerprint is checked.
   */
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
