package dev.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.grpc.Status;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Tests decisions that need no connection, with the vectors that all languages share. */
final class VectorsTest {
  @TempDir Path root;

  private static JsonElement read(String name) throws IOException {
    return JsonParser.parseString(Files.readString(Path.of("vectors", name)));
  }

  private static RollcallException.Failure failure(JsonObject one) {
    Duration after = one.has("retry_after_ms") ? Duration.ofMillis(one.get("retry_after_ms").getAsLong()) : null;
    String reason = one.has("reason") ? one.get("reason").getAsString() : "";
    return new RollcallException.Failure(
        Status.Code.valueOf(one.get("code").getAsString()), "no", reason, Map.of(), after, List.of());
  }

  private static Duration duration(JsonObject one, String key) {
    return one.get(key).isJsonNull() ? null : Duration.ofMillis(one.get(key).getAsLong());
  }

  @Test
  void repeatsCallsAndOpensWatchesAgainByTheTable() throws IOException {
    JsonObject vectors = read("retries.json").getAsJsonObject();
    for (JsonElement it : vectors.getAsJsonArray("retries")) {
      JsonObject one = it.getAsJsonObject();
      boolean isRepeatable = one.get("repeatable").getAsBoolean();
      double random = one.get("random").getAsDouble();
      int attempt = one.get("attempt").getAsInt();
      Duration wait = RetryPolicy.DEFAULT.waitBeforeRetry(failure(one), attempt, isRepeatable, random);
      assertEquals(duration(one, "wait_ms"), wait, it.toString());
    }
    for (JsonElement it : vectors.getAsJsonArray("attempts")) {
      JsonObject one = it.getAsJsonObject();
      Duration timeout = Duration.ofMillis(one.get("timeout_ms").getAsLong());
      int attempt = one.get("attempt").getAsInt();
      Duration limit = RetryPolicy.DEFAULT.attemptLimit(timeout, attempt, one.get("repeatable").getAsBoolean());
      assertEquals(duration(one, "limit_ms"), limit, it.toString());
    }
    for (JsonElement it : vectors.getAsJsonArray("resumes")) {
      JsonObject one = it.getAsJsonObject();
      double random = one.get("random").getAsDouble();
      Duration wait = RetryPolicy.waitBeforeResume(failure(one), one.get("breaks").getAsInt(), random);
      assertEquals(duration(one, "wait_ms"), wait, it.toString());
    }
  }

  @Test
  void readsBookmarks() throws IOException {
    for (JsonElement it : read("retries.json").getAsJsonObject().getAsJsonArray("bookmarks")) {
      JsonObject one = it.getAsJsonObject();
      String text = one.get("text").getAsString();
      if (one.get("token").isJsonNull()) {
        assertThrows(IllegalArgumentException.class, () -> Bookmark.parse(text));
      } else {
        long revision = Long.parseUnsignedLong(one.get("revision").getAsString());
        assertEquals(new Bookmark(one.get("token").getAsString(), revision), Bookmark.parse(text));
      }
    }
  }

  @Test
  void remembersTheRevision() throws IOException {
    for (JsonElement it : read("retries.json").getAsJsonObject().getAsJsonArray("revisions")) {
      JsonObject one = it.getAsJsonObject();
      SeenRevision seen = new SeenRevision();
      for (JsonElement that : one.getAsJsonArray("steps")) {
        JsonObject step = that.getAsJsonObject();
        if (step.has("answer")) seen.answered(step.get("answer").getAsString());
        if (step.has("message")) seen.heard(Long.parseLong(step.get("message").getAsString()));
        if (step.has("failure")) seen.failed(step.get("failure").getAsString());
      }
      String sends = one.get("sends").isJsonNull() ? null : one.get("sends").getAsString();
      assertEquals(sends, seen.header(), one.get("name").getAsString());
    }
  }

  @Test
  void readsAddresses() throws IOException {
    for (JsonElement it : read("addresses.json").getAsJsonArray()) {
      JsonObject one = it.getAsJsonObject();
      String text = one.get("text").getAsString();
      boolean isTls = one.has("tls") && one.get("tls").getAsBoolean();
      if (!one.has("refused")) {
        assertEquals(one.get("url").getAsString(), Address.parse(text, "a test", isTls).baseUrl());
        continue;
      }
      ConfigurationException refused =
          assertThrows(ConfigurationException.class, () -> Address.parse(text, "a test", isTls), text);
      assertTrue(refused.getMessage().contains(one.get("refused").getAsString()), refused.getMessage());
      assertFalse(refused.getMessage().contains("hunter2"), refused.getMessage());
    }
  }

  @TestFactory
  List<DynamicTest> findsTheControlPlane() throws IOException {
    return read("targets.json").getAsJsonArray().asList().stream()
        .map(JsonElement::getAsJsonObject)
        .map(one -> DynamicTest.dynamicTest(one.get("name").getAsString(), () -> check(one)))
        .toList();
  }

  private void check(JsonObject one) throws IOException {
    Path folder = Files.createTempDirectory(root, "target");
    Path home = folder.resolve("home");
    Map<String, String> files = new HashMap<>(Map.of("home/.rollcall/keep", "", "cwd/keep", ""));
    files.putAll(texts(one, "files"));
    for (var file : files.entrySet()) {
      Path path = folder.resolve(file.getKey());
      Files.createDirectories(path.getParent());
      Files.writeString(path, file.getValue());
    }
    Surroundings at =
        new Surroundings(texts(one, "env"), home, folder.resolve("cwd"), System.getProperty("user.name"));
    ClientOptions options = options(texts(one, "options"), home);
    if (one.has("error")) {
      ConfigurationException refused =
          assertThrows(ConfigurationException.class, () -> Target.resolve(options, at));
      assertTrue(refused.getMessage().contains(one.get("error").getAsString()), refused.getMessage());
      return;
    }
    Map<String, Target.Service> found = Target.resolve(options, at);
    texts(one, "addresses").forEach((name, url) -> assertEquals(url, found.get(name).address().baseUrl()));
    texts(one, "tokens").forEach((name, token) -> assertEquals(token, found.get(name).credential().token(), name));
    Target.Trust trust = found.get("registry").trust();
    assertEquals(text(one, "ca_file"), trust.caFile() == null ? null : trust.caFile().toString());
    assertEquals(text(one, "server_name"), trust.serverName());
  }

  private static ClientOptions options(Map<String, String> named, Path home) {
    ClientOptions options = new ClientOptions();
    for (var option : named.entrySet()) {
      String value = option.getValue().replace("HOME", home.toString());
      switch (option.getKey()) {
        case "server" -> options.server(value);
        case "health" -> options.health(value);
        case "admin" -> options.admin(value);
        case "scheduler" -> options.scheduler(value);
        case "token_file" -> options.tokenFile(Path.of(value));
        case "token" -> options.token(value);
        case "context" -> options.context(value);
        case "ca_fingerprint" -> options.caFingerprint(value);
        default -> throw new AssertionError(option);
      }
    }
    return options;
  }

  private static Map<String, String> texts(JsonObject one, String key) {
    Map<String, String> found = new HashMap<>();
    if (!one.has(key)) return found;
    one.getAsJsonObject(key).asMap().forEach((name, it) -> found.put(name, it.isJsonNull() ? null : it.getAsString()));
    return found;
  }

  private static String text(JsonObject one, String key) {
    return one.has(key) ? one.get(key).getAsString() : null;
  }
}
