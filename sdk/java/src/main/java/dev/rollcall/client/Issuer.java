package dev.rollcall.client;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import dev.rollcall.client.Contexts.Login;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Renews a login at its OpenID Connect issuer. */
final class Issuer {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final int MOST_ANSWER_BYTES = 1024 * 1024;
  private static final Pattern LOCAL = Pattern.compile("localhost|\\[::1]|127(\\.\\d{1,3}){3}");

  record Renewal(String token, Login login) {}

  private record Answer(int status, JsonObject fields) {}

  private Issuer() {}

  /**
   * Gets a new token for a login. Returns null if the issuer no longer renews the login. Throws RollcallException
   * if the issuer does not respond, and ConfigurationException if it refuses.
   */
  static Renewal renew(Login login, Instant now) {
    String place = login.issuer().replaceAll("/$", "") + "/.well-known/openid-configuration";
    Answer found = send(place, null);
    String endpoint = text(found.fields(), "token_endpoint");
    if (found.status() != 200 || !login.issuer().equals(text(found.fields(), "issuer")) || endpoint == null) {
      throw new ConfigurationException("the server at " + place + " is not the issuer " + login.issuer());
    }
    Map<String, String> form =
        Map.of(
            "grant_type", "refresh_token", "refresh_token", login.refreshToken(), "client_id", login.clientId());
    Answer answer = send(endpoint, form);
    if (answer.status() == 200) return tokens(answer.fields(), login, now);
    String error = text(answer.fields(), "error");
    if ("invalid_grant".equals(error)) return null;
    throw new ConfigurationException("the issuer " + login.issuer() + " refused the login: " + error);
  }

  private static Renewal tokens(JsonObject fields, Login login, Instant now) {
    for (String name : new String[] {"access_token", "id_token"}) {
      String token = text(fields, name);
      if (token == null || !isFor(token, login.audience())) continue;
      JsonElement exp = claims(token).get("exp");
      long lifeS = fields.has("expires_in") ? fields.get("expires_in").getAsLong() : 300;
      Instant expiresAt = exp == null ? now.plusSeconds(lifeS) : Instant.ofEpochSecond(exp.getAsLong());
      // Keep the previous refresh token, because an issuer that does not rotate refresh tokens sends no new one.
      String next = text(fields, "refresh_token");
      String refresh = next == null ? login.refreshToken() : next;
      return new Renewal(
          token, new Login(login.issuer(), login.clientId(), login.audience(), refresh, expiresAt));
    }
    throw new ConfigurationException(
        "the issuer " + login.issuer() + " issued no token for the audience " + login.audience());
  }

  private static boolean isFor(String token, String audience) {
    JsonElement aud = claims(token).get("aud");
    if (aud == null) return false;
    if (!aud.isJsonArray()) return aud.isJsonPrimitive() && aud.getAsString().equals(audience);
    for (JsonElement one : aud.getAsJsonArray()) {
      if (one.isJsonPrimitive() && one.getAsString().equals(audience)) return true;
    }
    return false;
  }

  /**
   * Reads the claims of a token without verifying them, because that is the server's task. Empty if the token is
   * not a JWT.
   */
  private static JsonObject claims(String token) {
    try {
      String body = token.split("\\.")[1];
      return object(new String(Base64.getUrlDecoder().decode(body), StandardCharsets.UTF_8));
    } catch (IllegalArgumentException | ArrayIndexOutOfBoundsException | JsonParseException none) {
      return new JsonObject();
    }
  }

  private static Answer send(String url, Map<String, String> form) {
    URI place = URI.create(url);
    // Require https, because a refresh token is sent to this address.
    if (!"https".equals(place.getScheme()) && !LOCAL.matcher(String.valueOf(place.getHost())).matches()) {
      throw new ConfigurationException(url + " is not an https:// address");
    }
    HttpRequest.Builder request = HttpRequest.newBuilder(place).timeout(TIMEOUT);
    if (form != null) {
      String body =
          form.entrySet().stream()
              .map(it -> encoded(it.getKey()) + "=" + encoded(it.getValue()))
              .collect(Collectors.joining("&"));
      request.header("content-type", "application/x-www-form-urlencoded").POST(BodyPublishers.ofString(body));
    }
    HttpClient client = HttpClient.newBuilder().connectTimeout(TIMEOUT).build();
    try {
      HttpResponse<InputStream> response = client.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
      try (InputStream body = response.body()) {
        byte[] bytes = body.readNBytes(MOST_ANSWER_BYTES);
        return new Answer(response.statusCode(), object(new String(bytes, StandardCharsets.UTF_8)));
      }
    } catch (IOException | JsonParseException cause) {
      String message = "cannot reach the issuer at " + place.getAuthority() + ": " + cause.getMessage();
      throw Failures.unreachable(message, cause);
    } catch (InterruptedException cause) {
      throw Failures.interrupted(cause);
    }
  }

  private static JsonObject object(String text) {
    JsonElement value = JsonParser.parseString(text);
    return value.isJsonObject() ? value.getAsJsonObject() : new JsonObject();
  }

  private static String text(JsonObject map, String key) {
    JsonElement value = map.get(key);
    return value != null && value.isJsonPrimitive() && !value.getAsString().isEmpty() ? value.getAsString() : null;
  }

  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }
}
