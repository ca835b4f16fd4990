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

/** Finds the control plane by the rules of the command line. */
final class Target {
  static final List<String> SERVICES = List.of("registry", "health", "admin", "scheduler");
  private static final String DEFAULT_SERVER = "127.0.0.1:7700";

  /** The authority that TLS connections trust, and the certificate that they present. Each value can be null. */
  record Trust(Path caFile, String caFingerprint, String serverName, Path clientCertificate, Path clientKey) {
    boolean isSaid() {
      return caFile != null || caFingerprint != null || serverName != null || clientCertificate != null;
    }
  }

  /** How to reach one service. */
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
      // A context that uses TLS always uses it, regardless of other settings, so that its token is never sent in
      // clear text.
      boolean isTls = context.caFile() != null || trust.isSaid() || isOwn(text);
      ofContext.add(Address.parse(text, "the context", isTls).baseUrl());
    }
  }

  /** Finds the control plane without connecting. Throws ConfigurationException. */
  static Map<String, Service> resolve(ClientOptions options, Surroundings at) {
    // If a script's variable is unset, do not fall back to another token, which may have more rights.
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
   * The token for one address. A context's token is sent only to the addresses in the context. The data directory's
   * token is sent only to this machine and to the server that wrote it. Any other server could misuse the token.
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
      throw new ConfigurationException("caFile and caFingerprint cannot be combined");
    }
    Path certificate = path(options.clientCertificate, "ROLLCALL_CLIENT_CERT");
    Path key = path(options.clientKey, "ROLLCALL_CLIENT_KEY");
    if ((certificate == null) != (key == null)) {
      throw new ConfigurationException("a client certificate and its key must be set together");
    }
    String name = first(options.serverName, at.variable("ROLLCALL_TLS_SERVER_NAME"));
    if (options.caFingerprint != null) {
      return new Trust(null, Authority.parseFingerprint(options.caFingerprint), name, certificate, key);
    }
    Path ca = path(options.caFile, "ROLLCALL_CA_FILE");
    if (ca == null && context != null && context.caFile() != null && !isElsewhere()) ca = Path.of(context.caFile());
    return new Trust(ca, null, name, certificate, key);
  }

  /** Whether the options name addresses outside the context. If so, the context's authority is ignored. */
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

  /**
   * Reads the file that this user's running `rollcall up` wrote. Returns null if the file is missing or incomplete
   * after a crash.
   */
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
