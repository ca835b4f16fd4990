package dev.rollcall.client;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import dev.rollcall.client.Contexts.Context;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** Which control plane a program talks to, by the rules of the command line. */
final class Target {
  static final List<String> SERVICES = List.of("registry", "health", "admin", "scheduler");
  private static final String DEFAULT_SERVER = "127.0.0.1:7700";

  /** What connections over TLS trust, and show; each may be null. */
  record Trust(Path caFile, String caFingerprint, String serverName, Path clientCertificate, Path clientKey) {
    boolean isSaid() {
      return caFile != null || caFingerprint != null || serverName != null || clientCertificate != null;
    }
  }

  /** How one service is reached. */
  record Service(Address address, Credential credential, Trust trust) {}

  private record RunFile(String server, JsonObject tls) {
    String said(String key) {
      JsonElement value = tls == null ? null : tls.get(key);
      return value != null && value.isJsonPrimitive() ? value.getAsString() : null;
    }
  }

  private final ClientOptions options;
  private final Surroundings at;
  private final Path data;
  private final RunFile run;
  private final Context context;
  private final Trust trust;
  private final Set<String> ofContext = new HashSet<>();

  private Target(ClientOptions options, Surroundings at) {
    this.options = options;
    this.at = at;
    data = at.dataDirectory();
    run = readRunFile(data);
    String wanted = options.context != null ? options.context : at.variable("ROLLCALL_CONTEXT");
    context = Contexts.read(at.contextFile(), wanted);
    trust = findTrust();
    if (context == null) return;
    for (String text : context.addresses().values()) {
      // What the context meant by TLS stays so, whatever is named besides: its token never goes in clear text instead.
      boolean isTls = context.caFile() != null || trust.isSaid() || isOwn(text);
      ofContext.add(Address.parse(text, "the context", isTls).baseUrl());
    }
  }

  /** Finds the control plane. Throws ConfigurationException; connects to nothing. */
  static Map<String, Service> resolve(ClientOptions options, Surroundings at) {
    // A script's variable that was not set must not be replaced by a token that may do more.
    if (options.token != null && options.token.isBlank()) throw new ConfigurationException("token is empty");
    Target target = new Target(options, at);
    Map<String, Service> found = new LinkedHashMap<>();
    for (String service : SERVICES) found.put(service, target.find(service));
    return found;
  }

  private Service find(String service) {
    String variable = "ROLLCALL_" + service.toUpperCase(Locale.ROOT);
    Map<String, String> named = context == null ? Map.of() : context.addresses();
    String inContext = first(named.get(service), named.get("server"));
    String[][] candidates = {
      {options.addresses.get(service), service},
      {options.addresses.get("server"), "server"},
      {options.context != null ? inContext : null, "the context"},
      {at.variable(variable), variable},
      {at.variable("ROLLCALL_SERVER"), "ROLLCALL_SERVER"},
      {inContext, "the context"},
      {run == null ? null : run.server(), "the run file"},
      {DEFAULT_SERVER, "the default"},
    };
    for (String[] candidate : candidates) {
      if (candidate[0] == null || candidate[0].isEmpty()) continue;
      Address address = Address.parse(candidate[0], candidate[1], trust.isSaid() || isOwn(candidate[0]));
      return new Service(address, credentialFor(address), trustFor(address));
    }
    throw new IllegalStateException("the default is missing");
  }

  /**
   * The token for one address. A context's is for the addresses that the context names alone, the data directory's for
   * this machine and for the server that wrote it: any other server could misuse them.
   */
  private Credential credentialFor(Address address) {
    Credential named = said(options.token, options.tokenFile == null ? null : options.tokenFile.toString());
    if (named != null) return named;
    Credential inContext = ofContext.contains(address.baseUrl()) ? ofContext() : null;
    if (options.context != null && inContext != null) return inContext;
    Credential inEnvironment = said(at.variable("ROLLCALL_TOKEN"), at.variable("ROLLCALL_TOKEN_FILE"));
    if (inEnvironment != null) return inEnvironment;
    if (inContext != null) return inContext;
    if (!address.isLoopback() && !address.baseUrl().equals(ownUrl())) return Credential.NONE;
    return Credential.file(data.resolve("admin-token"), false);
  }

  private Credential ofContext() {
    if (context.login() == null) return said(context.token(), context.tokenFile());
    return Credential.login(at.contextFile(), context.name(), Clock.systemUTC());
  }

  private Credential said(String token, String file) {
    if (token != null) return Credential.of(token);
    return file == null ? null : Credential.file(at.cwd().resolve(file), true);
  }

  private Trust trustFor(Address address) {
    if (run == null || run.tls() == null || !address.baseUrl().equals(ownUrl())) return trust;
    String written = trust.caFingerprint() == null ? run.said("caFile") : null;
    Path ca = trust.caFile() != null || written == null ? trust.caFile() : Path.of(written);
    String name = first(trust.serverName(), run.said("serverName"));
    return new Trust(ca, trust.caFingerprint(), name, trust.clientCertificate(), trust.clientKey());
  }

  private Trust findTrust() {
    if (options.caFile != null && options.caFingerprint != null) {
      throw new ConfigurationException("caFile and caFingerprint exclude each other");
    }
    Path certificate = path(options.clientCertificate, "ROLLCALL_CLIENT_CERT");
    Path key = path(options.clientKey, "ROLLCALL_CLIENT_KEY");
    if ((certificate == null) != (key == null)) {
      throw new ConfigurationException("a client certificate and its key go together");
    }
    String name = first(options.serverName, at.variable("ROLLCALL_TLS_SERVER_NAME"));
    if (options.caFingerprint != null) {
      return new Trust(null, Authority.parseFingerprint(options.caFingerprint), name, certificate, key);
    }
    Path ca = path(options.caFile, "ROLLCALL_CA_FILE");
    if (ca == null && context != null && context.caFile() != null && !isElsewhere()) ca = Path.of(context.caFile());
    return new Trust(ca, null, name, certificate, key);
  }

  /** A context's authority is for its own addresses: it is ignored where others are named. */
  private boolean isElsewhere() {
    if (options.addresses.values().stream().anyMatch(it -> it != null && !it.isEmpty())) return true;
    if (options.context != null) return false;
    if (at.variable("ROLLCALL_SERVER") != null) return true;
    return SERVICES.stream().anyMatch(it -> at.variable("ROLLCALL_" + it.toUpperCase(Locale.ROOT)) != null);
  }

  private boolean isOwn(String text) {
    return run != null && run.tls() != null && text.equals(run.server());
  }

  private String ownUrl() {
    return run == null ? null : Address.parse(run.server(), "the run file", run.tls() != null).baseUrl();
  }

  private Path path(Path named, String variable) {
    if (named != null) return at.cwd().resolve(named);
    return at.variable(variable) == null ? null : at.cwd().resolve(at.variable(variable));
  }

  /** What the running `rollcall up` of this user wrote; null where there is none, or a crash left half of it. */
  private static RunFile readRunFile(Path data) {
    try {
      JsonObject file = JsonParser.parseString(Files.readString(data.resolve("run.json"))).getAsJsonObject();
      JsonElement tls = file.get("tls");
      JsonObject own = tls != null && tls.isJsonObject() ? tls.getAsJsonObject() : null;
      return new RunFile(file.get("server").getAsString(), own);
    } catch (IOException | JsonParseException | IllegalStateException | NullPointerException none) {
      return null;
    }
  }

  private static String first(String one, String other) {
    return one != null && !one.isEmpty() ? one : other;
  }
}
