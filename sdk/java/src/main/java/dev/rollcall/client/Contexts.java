package dev.rollcall.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.Map;
import org.yaml.snakeyaml.DumperOptions;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;
import org.yaml.snakeyaml.error.YAMLException;
import org.yaml.snakeyaml.representer.Representer;

/** The contexts of the command line, which `rollcall login` writes. */
final class Contexts {
  private static final String PREFACE =
      "# Written by `rollcall login` and `rollcall context`. It holds tokens: keep it private.\n";

  /**
   * A login through an OpenID Connect issuer, with the data to renew its token. {@code refreshToken} can be null.
   */
  record Login(String issuer, String clientId, String audience, String refreshToken, Instant expiresAt) {
    Login withRefreshToken(String token) {
      return new Login(issuer, clientId, audience, token, expiresAt);
    }
  }

  /** One control plane and its credentials. Strings and the login can be null. */
  record Context(
      String name, Map<String, String> addresses, String token, String tokenFile, String caFile, Login login) {}

  private Contexts() {}

  /**
   * Reads the named context, or the current one if {@code wanted} is null. Returns null if no context is in use.
   * Throws ConfigurationException.
   */
  static Context read(Path path, String wanted) {
    Map<?, ?> file = load(path);
    String name = wanted != null ? wanted : text(file, "current_context");
    if (name == null) return null;
    if (!(map(file.get("contexts")).get(name) instanceof Map<?, ?> found)) {
      throw new ConfigurationException("there is no context \"" + name + "\" in " + path);
    }
    Map<String, String> addresses = new LinkedHashMap<>();
    for (String key : new String[] {"server", "registry", "health", "admin", "scheduler"}) {
      if (text(found, key) != null) addresses.put(key, text(found, key));
    }
    Login login = found.get("oidc") == null ? null : login(name, map(found.get("oidc")));
    return new Context(
        name, addresses, text(found, "token"), text(found, "token_file"), text(found, "ca_file"), login);
  }

  /** Saves a renewed token in its context, unless the context is gone. Throws ConfigurationException. */
  static void save(Path path, String name, String token, Login login) {
    Map<Object, Object> file = new LinkedHashMap<>(load(path));
    Map<Object, Object> contexts = new LinkedHashMap<>(map(file.get("contexts")));
    Map<Object, Object> context = new LinkedHashMap<>(map(contexts.get(name)));
    if (context.get("oidc") == null) return;
    Map<Object, Object> oidc = new LinkedHashMap<>(map(context.get("oidc")));
    if (login.refreshToken() != null) oidc.put("refresh_token", login.refreshToken());
    oidc.put("expires_at", login.expiresAt().toString());
    context.put("token", token);
    context.put("oidc", oidc);
    contexts.put(name, context);
    file.put("contexts", contexts);
    Path draft = null;
    try {
      // Only the owner can read the draft.
      draft = Files.createTempFile(path.getParent(), path.getFileName().toString(), ".draft");
      Files.setPosixFilePermissions(draft, PosixFilePermissions.fromString("rw-------"));
      Files.writeString(draft, PREFACE + dumper().dump(file));
      // Rename the draft, so that a concurrent reader sees either the old file or the complete new file.
      Files.move(draft, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException | UnsupportedOperationException cause) {
      discard(draft);
      throw new ConfigurationException("cannot write " + path + ": " + cause.getMessage(), cause);
    }
  }

  private static void discard(Path draft) {
    try {
      if (draft != null) Files.deleteIfExists(draft);
    } catch (IOException left) {
      // Ignore this error, because the failed write is more important.
    }
  }

  private static Login login(String name, Map<?, ?> it) {
    String issuer = text(it, "issuer");
    String clientId = text(it, "client_id");
    if (issuer == null || clientId == null) {
      throw new ConfigurationException("oidc of context " + name + " has no issuer or no client_id");
    }
    String audience = text(it, "audience");
    return new Login(
        issuer, clientId, audience == null ? "" : audience, text(it, "refresh_token"), time(it.get("expires_at")));
  }

  /** An unreadable time counts as expired, so that the token is renewed. */
  private static Instant time(Object value) {
    if (value instanceof Date date) return date.toInstant();
    try {
      return Instant.parse(String.valueOf(value));
    } catch (DateTimeException unknown) {
      return Instant.EPOCH;
    }
  }

  private static Map<?, ?> load(Path path) {
    try {
      return map(new Yaml(new SafeConstructor(new LoaderOptions())).load(Files.readString(path)));
    } catch (NoSuchFileException none) {
      return Map.of();
    } catch (IOException cause) {
      throw new ConfigurationException("cannot read " + path + ": " + cause.getMessage(), cause);
    } catch (YAMLException cause) {
      throw new ConfigurationException("cannot parse " + path + ": " + cause.getMessage(), cause);
    }
  }

  private static Yaml dumper() {
    DumperOptions options = new DumperOptions();
    options.setDefaultFlowStyle(DumperOptions.FlowStyle.BLOCK);
    options.setSplitLines(false);
    return new Yaml(new SafeConstructor(new LoaderOptions()), new Representer(options), options);
  }

  private static Map<?, ?> map(Object value) {
    return value instanceof Map<?, ?> it ? it : Map.of();
  }

  private static String text(Map<?, ?> map, String key) {
    return map.get(key) instanceof String it && !it.isEmpty() ? it : null;
  }
}
