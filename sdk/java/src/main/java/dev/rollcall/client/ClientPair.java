package dev.rollcall.client;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The content of a client's certificate file and its key file. */
record ClientPair(byte[] certificate, byte[] key) {
  private static final Pattern KEY = Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");

  /**
   * Reads a certificate and its key. Throws ConfigurationException if they do not match, for example while the pair is
   * half replaced. gRPC would accept the pair and fail at each handshake.
   */
  static ClientPair read(Path certificateFile, Path keyFile) throws IOException {
    ClientPair pair = new ClientPair(Files.readAllBytes(certificateFile), Files.readAllBytes(keyFile));
    try {
      if (pair.matches()) return pair;
    } catch (GeneralSecurityException | IllegalArgumentException cause) {
      throw new ConfigurationException(unusable(certificateFile, keyFile), cause);
    }
    throw new ConfigurationException(unusable(certificateFile, keyFile));
  }

  private static String unusable(Path certificateFile, Path keyFile) {
    return certificateFile + " and " + keyFile + " are not a certificate and its key (PKCS #8, without a password)";
  }

  /** Whether the certificate verifies a signature made with the key. */
  private boolean matches() throws GeneralSecurityException {
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    PublicKey publicKey = factory.generateCertificate(new ByteArrayInputStream(certificate)).getPublicKey();
    Matcher found = KEY.matcher(new String(key, StandardCharsets.ISO_8859_1));
    if (!found.find()) return false;
    byte[] encoded = Base64.getMimeDecoder().decode(found.group(1));
    String algorithm = publicKey.getAlgorithm();
    PrivateKey privateKey = KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(encoded));
    Signature signature = Signature.getInstance(signatureOf(algorithm));
    signature.initSign(privateKey);
    signature.update(certificate);
    byte[] signed = signature.sign();
    signature.initVerify(publicKey);
    signature.update(certificate);
    return signature.verify(signed);
  }

  private static String signatureOf(String algorithm) {
    return switch (algorithm) {
      case "EC" -> "SHA256withECDSA";
      case "RSA" -> "SHA256withRSA";
      default -> algorithm;
    };
  }
}
