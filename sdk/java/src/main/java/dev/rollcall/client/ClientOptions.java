package dev.rollcall.client;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * The address of the control plane, the credentials, and the settings for calls. The client looks up each setting as
 * the command line does, in this order: the options here, the named context, the environment, the current context,
 * the file of this user's running `rollcall up`, and 127.0.0.1:7700.
 */
public final class ClientOptions {
  final Map<String, String> addresses = new HashMap<>();
  String token;
  Path tokenFile;
  Path caFile;
  String caFingerprint;
  String serverName;
  Path clientCertificate;
  Path clientKey;
  String context;
  Duration timeout = Duration.ofSeconds(10);
  RetryPolicy retry = RetryPolicy.DEFAULT;

  /** HOST:PORT or a URL that serves all services. */
  public ClientOptions server(String address) {
    return at("server", address);
  }

  /** The address of the registry, if it runs separately. */
  public ClientOptions registry(String address) {
    return at("registry", address);
  }

  /** The address of the health service, if it runs separately. */
  public ClientOptions health(String address) {
    return at("health", address);
  }

  /** The address of the admin service, if it runs separately. */
  public ClientOptions admin(String address) {
    return at("admin", address);
  }

  /** The address of the scheduler, if it runs separately. */
  public ClientOptions scheduler(String address) {
    return at("scheduler", address);
  }

  /** An access token. */
  public ClientOptions token(String text) {
    token = text;
    return this;
  }

  /** A file with an access token. It is read for each call, so that you can replace it. */
  public ClientOptions tokenFile(Path file) {
    tokenFile = file;
    return this;
  }

  /** A PEM file with the authority of the server's certificate. */
  public ClientOptions caFile(Path file) {
    caFile = file;
    return this;
  }

  /**
   * "sha256:" and 64 hexadecimal digits. The client fetches the authority from the server, compares its fingerprint,
   * and trusts only this authority.
   */
  public ClientOptions caFingerprint(String text) {
    caFingerprint = text;
    return this;
  }

  /** The name in the server's certificate, if it differs from the address. */
  public ClientOptions serverName(String name) {
    serverName = name;
    return this;
  }

  /** PEM files with the client's certificate and its key. */
  public ClientOptions clientCertificate(Path certificate, Path key) {
    clientCertificate = certificate;
    clientKey = key;
    return this;
  }

  /** The name of a context of the command line. */
  public ClientOptions context(String name) {
    context = name;
    return this;
  }

  /** The time limit of a call, including retries, unless the call sets its own. Default: 10 s. */
  public ClientOptions timeout(Duration limit) {
    timeout = limit;
    return this;
  }

  /** Sets how failed calls are retried. */
  public ClientOptions retry(RetryPolicy policy) {
    retry = policy;
    return this;
  }

  private ClientOptions at(String service, String address) {
    addresses.put(service, address);
    return this;
  }
}
