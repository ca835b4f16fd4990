package dev.rollcall.client;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * Where the control plane is, who calls, and how. What is not named is found as the command line finds it: what is
 * named here wins, then the context that is named, the environment, the context in use, what the running `rollcall up`
 * of this user wrote, and 127.0.0.1:7700.
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

  /** HOST:PORT or a URL of all services. */
  public ClientOptions server(String address) {
    return at("server", address);
  }

  /** The address of the registry, where it is apart. */
  public ClientOptions registry(String address) {
    return at("registry", address);
  }

  /** The address of health, where it is apart. */
  public ClientOptions health(String address) {
    return at("health", address);
  }

  /** The address of admin, where it is apart. */
  public ClientOptions admin(String address) {
    return at("admin", address);
  }

  /** The address of the scheduler, where it is apart. */
  public ClientOptions scheduler(String address) {
    return at("scheduler", address);
  }

  /** An access token. */
  public ClientOptions token(String text) {
    token = text;
    return this;
  }

  /** A file that holds an access token; it is read again for each call, so that it may be replaced. */
  public ClientOptions tokenFile(Path file) {
    tokenFile = file;
    return this;
  }

  /** PEM file of the authority of the server's certificate. */
  public ClientOptions caFile(Path file) {
    caFile = file;
    return this;
  }

  /** "sha256:" and 64 hexadecimal digits: the authority is fetched from the server, compared, and alone trusted. */
  public ClientOptions caFingerprint(String text) {
    caFingerprint = text;
    return this;
  }

  /** The name that the server's certificate is for, where that is not the address's. */
  public ClientOptions serverName(String name) {
    serverName = name;
    return this;
  }

  /** PEM files. */
  public ClientOptions clientCertificate(Path certificate, Path key) {
    clientCertificate = certificate;
    clientKey = key;
    return this;
  }

  /** A context of the command line. */
  public ClientOptions context(String name) {
    context = name;
    return this;
  }

  /** What a call may take, its retries included, unless it says otherwise. Default: 10 s. */
  public ClientOptions timeout(Duration limit) {
    timeout = limit;
    return this;
  }

  /** How failed calls are made again. */
  public ClientOptions retry(RetryPolicy policy) {
    retry = policy;
    return this;
  }

  private ClientOptions at(String service, String address) {
    addresses.put(service, address);
    return this;
  }
}
