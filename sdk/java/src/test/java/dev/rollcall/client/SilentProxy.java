package dev.rollcall.client;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** Forwards connections until it falls silent. After that, open connections stay open but carry no data. */
final class SilentProxy implements AutoCloseable {
  private final int target;
  private final ServerSocket listener = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private final AtomicInteger accepted = new AtomicInteger();
  private volatile int silenced;

  SilentProxy(int target) throws IOException {
    this.target = target;
    start(this::accept);
  }

  String address() {
    return "127.0.0.1:" + listener.getLocalPort();
  }

  int accepted() {
    return accepted.get();
  }

  void fallSilent() {
    silenced = accepted.get();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket socket : sockets) socket.close();
  }

  private void accept() {
    try {
      for (;;) {
        Socket client = listener.accept();
        Socket upstream = new Socket(InetAddress.getLoopbackAddress(), target);
        sockets.addAll(List.of(client, upstream));
        int number = accepted.incrementAndGet();
        start(() -> carry(client, upstream, number));
        start(() -> carry(upstream, client, number));
      }
    } catch (IOException closed) {
      // Ignore the error, because the test has ended.
    }
  }

  private void carry(Socket from, Socket to, int number) {
    try (from;
        to) {
      byte[] piece = new byte[65_536];
      for (int length; (length = from.getInputStream().read(piece)) >= 0; ) {
        if (number > silenced) to.getOutputStream().write(piece, 0, length);
      }
    } catch (IOException broken) {
      // Ignore the error. Leaving the try block closes both sockets.
    }
  }

  private static void start(Runnable work) {
    Thread thread = new Thread(work, "silent-proxy");
    thread.setDaemon(true);
    thread.start();
  }
}
