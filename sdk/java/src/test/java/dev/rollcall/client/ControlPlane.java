package dev.rollcall.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** A real `rollcall up` process for tests. It keeps its ports when it restarts. */
final class ControlPlane implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  final Path root = Files.createTempDirectory("rollcall-java-");
  final Path tokenFile = root.resolve("data").resolve("admin-token");
  final String server;
  private final List<String> command = new ArrayList<>();
  private Process process;

  ControlPlane() throws IOException {
    String bin = System.getenv().getOrDefault("ROLLCALL_BIN", "../../bin/rollcall");
    Path data = root.resolve("data");
    Files.createDirectory(data, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    command.addAll(List.of(bin, "up", "--data-dir=" + data));
    List<ServerSocket> sockets = new ArrayList<>();
    for (String flag : List.of("port", "agent-port", "probe-port", "internal-port")) {
      ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
      sockets.add(socket);
      command.add("--" + flag + "=" + socket.getLocalPort());
    }
    server = "127.0.0.1:" + sockets.get(0).getLocalPort();
    for (ServerSocket socket : sockets) socket.close();
  }

  /** Waits until a condition is true. */
  static void eventually(String what, BooleanSupplier isSo) {
    long endsAt = System.nanoTime() + LIMIT.toNanos();
    while (!isSo.getAsBoolean()) {
      if (System.nanoTime() > endsAt) throw new AssertionError("it did not come true: " + what);
      try {
        Thread.sleep(50);
      } catch (InterruptedException interrupted) {
        throw new AssertionError(interrupted);
      }
    }
  }

  /** Starts the process, and waits until it responds. */
  void start() {
    try {
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      process = builder.redirectOutput(ProcessBuilder.Redirect.appendTo(root.resolve("up.log").toFile())).start();
    } catch (IOException cause) {
      throw new UncheckedIOException(cause);
    }
    eventually("the control plane answers", this::answers);
  }

  /** Kills the process, as in a crash. */
  void kill() {
    process.destroyForcibly();
    await();
  }

  /** Kills the process, as in a crash, and restarts it. */
  void crash() {
    kill();
    start();
  }

  ClientOptions options() {
    return new ClientOptions().server(server).tokenFile(tokenFile);
  }

  @Override
  public void close() {
    process.destroy();
    await();
    // The agent and the keeper end a little later, and write files until they do.
    eventually("the files are removed", this::isRemoved);
  }

  private boolean answers() {
    if (!process.isAlive()) throw new AssertionError("it ended: " + root.resolve("up.log"));
    try (Client client = Client.create(options().timeout(Duration.ofSeconds(1)))) {
      client.registry.getClusterSummary(dev.rollcall.registry.v1.GetClusterSummaryRequest.getDefaultInstance());
      return true;
    } catch (RollcallException | ConfigurationException notYet) {
      return false;
    }
  }

  private void await() {
    try {
      if (!process.waitFor(60, TimeUnit.SECONDS)) throw new AssertionError("it does not end");
    } catch (InterruptedException interrupted) {
      throw new AssertionError(interrupted);
    }
  }

  private boolean isRemoved() {
    try (Stream<Path> files = Files.walk(root)) {
      for (Path path : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(path);
      return true;
    } catch (IOException | UncheckedIOException notYet) {
      return false;
    }
  }
}
