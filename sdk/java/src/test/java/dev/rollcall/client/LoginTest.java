package dev.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests a login that the issuer no longer renews. */
final class LoginTest {
  @TempDir Path root;

  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicReference<Runnable> onRefusal = new AtomicReference<>(() -> {});
  private HttpServer issuer;
  private String url;
  private Path file;

  @BeforeEach
  void start() throws IOException {
    file = root.resolve("config.yaml");
    issuer = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    url = "http://127.0.0.1:" + issuer.getAddress().getPort();
    String discovery = "{\"issuer\":\"" + url + "\",\"token_endpoint\":\"" + url + "/token\"}";
    issuer.createContext("/", exchange -> answer(exchange, 200, discovery));
    issuer.createContext("/token", this::giveToken);
    issuer.start();
  }

  @AfterEach
  void stop() {
    issuer.stop(0);
  }

  /** Accepts only the refresh token "good". */
  private void giveToken(HttpExchange exchange) throws IOException {
    asked.incrementAndGet();
    String form = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    if (!form.contains("refresh_token=good")) {
      onRefusal.get().run();
      answer(exchange, 400, "{\"error\":\"invalid_grant\"}");
      return;
    }
    byte[] claims = "{\"aud\":\"rollcall\",\"exp\":9999999999}".getBytes(StandardCharsets.UTF_8);
    String token = "e30." + Base64.getUrlEncoder().withoutPadding().encodeToString(claims) + ".x";
    answer(exchange, 200, "{\"access_token\":\"" + token + "\",\"refresh_token\":\"next\"}");
  }

  private static void answer(HttpExchange exchange, int code, String text) throws IOException {
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(code, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  private void writeContext(String refreshToken) {
    String text =
        "contexts: {lab: {server: 'localhost:1', token: old, oidc: {issuer: '%s', client_id: cli, audience: rollcall, "
            + "refresh_token: %s, expires_at: '1970-01-01T00:00:00Z'}}}\n";
    try {
      Files.writeString(file, String.format(text, url, refreshToken));
    } catch (IOException cause) {
      throw new UncheckedIOException(cause);
    }
  }

  @Test
  void remembersARefusalForAWhile() {
    writeContext("bad");
    AtomicReference<Instant> now = new AtomicReference<>(Instant.ofEpochSecond(1_000_000_000));
    Clock clock =
        new Clock() {
          @Override
          public ZoneId getZone() {
            return ZoneOffset.UTC;
          }

          @Override
          public Clock withZone(ZoneId zone) {
            return this;
          }

          @Override
          public Instant instant() {
            return now.get();
          }
        };
    Credential login = Credential.login(file, "lab", clock);
    for (int call = 0; call < 50; call++) {
      assertTrue(assertThrows(ConfigurationException.class, login::token).getMessage().contains("has expired"));
    }
    assertEquals(1, asked.get());
    now.updateAndGet(it -> it.plus(Duration.ofSeconds(30)));
    assertThrows(ConfigurationException.class, login::token);
    assertEquals(2, asked.get());
    writeContext("good");
    assertTrue(login.token().startsWith("e30."));
  }

  @Test
  void takesWhatAnotherProgramSavesAfterARefusal() {
    writeContext("bad");
    onRefusal.set(() -> writeContext("good"));
    assertTrue(Credential.login(file, "lab", Clock.systemUTC()).token().startsWith("e30."));
  }
}
