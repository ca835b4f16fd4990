package dev.rollcall.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/**
 * The environment that determines the paths of this user's files. Only directories that {@code user} owns can be
 * trusted.
 */
record Surroundings(Map<String, String> env, Path home, Path cwd, String user) {
  private static final Path SYSTEM_DIRECTORY = Path.of("/var/lib/rollcall");

  static Surroundings ofProcess() {
    // Use the variable HOME, as the command line does. The system property ignores it.
    String named = System.getenv("HOME");
    Path home = Path.of(named == null || named.isEmpty() ? System.getProperty("user.home") : named);
    return new Surroundings(System.getenv(), home, Path.of("").toAbsolutePath(), System.getProperty("user.name"));
  }

  /** The value of a variable; null if it is unset or empty. */
  String variable(String name) {
    String value = env.get(name);
    return value == null || value.isEmpty() ? null : value;
  }

  /** The path of the file with the contexts. */
  Path contextFile() {
    String named = variable("XDG_CONFIG_HOME");
    // Ignore a relative path, as the XDG standard requires.
    Path base = named != null && named.startsWith("/") ? Path.of(named) : home.resolve(".config");
    return base.resolve("rollcall").resolve("config.yaml");
  }

  /** Where this user's running `rollcall up` writes its address. */
  Path dataDirectory() {
    String named = variable("ROLLCALL_DATA_DIR");
    if (named != null) return cwd.resolve(named);
    // Ignore another user's directory. It could redirect calls and their token to that user's server.
    Path here = cwd.resolve(".rollcall");
    if (isOurs(here)) return here;
    Path own = home.resolve(".rollcall");
    return user.equals("root") && !isOurs(own) ? SYSTEM_DIRECTORY : own;
  }

  private boolean isOurs(Path path) {
    try {
      return Files.isDirectory(path) && Files.getOwner(path).getName().equals(user);
    } catch (IOException | UnsupportedOperationException unknown) {
      return false;
    }
  }
}
