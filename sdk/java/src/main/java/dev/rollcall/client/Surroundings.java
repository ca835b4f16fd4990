package dev.rollcall.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** What the paths of this user's files depend on. {@code user} owns directories that may be trusted. */
record Surroundings(Map<String, String> env, Path home, Path cwd, String user) {
  private static final Path SYSTEM_DIRECTORY = Path.of("/var/lib/rollcall");

  static Surroundings ofProcess() {
    // As the command line does: the system property ignores the variable.
    String named = System.getenv("HOME");
    Path home = Path.of(named == null || named.isEmpty() ? System.getProperty("user.home") : named);
    return new Surroundings(System.getenv(), home, Path.of("").toAbsolutePath(), System.getProperty("user.name"));
  }

  /** A variable; null where it is not set, or empty. */
  String variable(String name) {
    String value = env.get(name);
    return value == null || value.isEmpty() ? null : value;
  }

  /** Where contexts are kept. */
  Path contextFile() {
    String named = variable("XDG_CONFIG_HOME");
    // The standard says that a path that is not absolute is to be ignored.
    Path base = named != null && named.startsWith("/") ? Path.of(named) : home.resolve(".config");
    return base.resolve("rollcall").resolve("config.yaml");
  }

  /** Where the running `rollcall up` of this user writes where it is. */
  Path dataDirectory() {
    String named = variable("ROLLCALL_DATA_DIR");
    if (named != null) return cwd.resolve(named);
    // Another user's directory could send calls, and the token with them, to a server of theirs.
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
