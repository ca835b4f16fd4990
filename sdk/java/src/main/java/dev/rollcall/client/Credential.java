package dev.rollcall.client;

import dev.rollcall.client.Contexts.Context;
import dev.rollcall.client.Contexts.Login;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;

/** Authenticates calls to one service. */
interface Credential {
  /**
   * The token to send now; null if there is none. Throws ConfigurationException, and RollcallException if the issuer
   * does not respond.
   */
  String token();

  /** No token. */
  Credential NONE = () -> null;

  /** Always returns this token. */
  static Credential of(String token) {
    return token::strip;
  }

  /** A token file. It is read for each call, because it may be replaced while the program runs. */
  static Credential file(Path path, boolean isRequired) {
    return () -> {
      try {
        String token = Files.readString(path).strip();
        if (!token.isEmpty()) return token;
      } catch (IOException cause) {
        if (isRequired || !(cause instanceof NoSuchFileException)) {
          String message = "cannot read the access token in " + path + ": " + cause.getMessage();
          throw new ConfigurationException(message, cause);
        }
      }
      if (isRequired) throw new ConfigurationException("cannot read the access token: there is none in " + path);
      return null;
    };
  }

  /**
   * The token of a context that logged in through an issuer. Before the token expires, it is renewed once on behalf of
   * all calls, and saved.
   */
  static Credential login(Path file, String context, Clock clock) {
    return new Renewed(file, context, clock);
  }

  /** See {@link #login}. */
  final class Renewed implements Credential {
    // How long before its expiry a token is renewed, so that it does not expire during a call.
    private static final Duration MARGIN = Duration.ofSeconds(30);
    // If the issuer refuses a refresh token, another program may have just used it and be about to save its successor.
    // A call therefore reads the file up to LOOKS times, every SCAN_EVERY milliseconds. After that, the token counts as
    // refused for REFUSAL_LASTS, and no request is sent to the issuer.
    private static final int LOOKS = 20;
    private static final long SCAN_EVERY = 100;
    private static final Duration REFUSAL_LASTS = Duration.ofSeconds(30);

    private final Path file;
    private final String name;
    private final Clock clock;
    private String token;
    private Login login;
    // The refresh token in the file, and its successor that could not be saved.
    private String unsavedOf;
    private String unsaved;
    // The refresh token that the issuer refused, and when it did. The refusal becomes final if the file still contains
    // that token when a call reads it for the last time.
    private String refused;
    private Instant refusedAt = Instant.EPOCH;
    private boolean isFinal;

    Renewed(Path file, String name, Clock clock) {
      this.file = file;
      this.name = name;
      this.clock = clock;
    }

    @Override
    public String token() {
      for (int looks = 0; looks < LOOKS; looks++) {
        if (looks > 0) pause();
        String found = look(looks == LOOKS - 1);
        if (found != null) return found;
      }
      throw over();
    }

    /** The token; null if another program may still save a new one. */
    private synchronized String look(boolean isLast) {
      if (isGood(token, login)) return token;
      // The command line or another program may have renewed the token in the meantime.
      Context context = Contexts.read(file, name);
      if (context.login() == null) throw new ConfigurationException("context " + name + " no longer has a login");
      token = context.token();
      login = context.login();
      if (isGood(token, login)) return token;
      String saved = login.refreshToken();
      if (saved == null) throw over();
      String refreshToken = saved.equals(unsavedOf) ? unsaved : saved;
      if (!isRefused(refreshToken)) {
        if (renew(saved, login.withRefreshToken(refreshToken))) return token;
        isFinal = isFinal && refreshToken.equals(refused);
        refused = refreshToken;
        refusedAt = clock.instant();
      }
      isFinal = isFinal || isLast;
      if (isFinal) throw over();
      return null;
    }

    private boolean isRefused(String refreshToken) {
      Instant now = clock.instant();
      return refreshToken.equals(refused) && !now.isBefore(refusedAt) && now.isBefore(refusedAt.plus(REFUSAL_LASTS));
    }

    private ConfigurationException over() {
      String again = "log in again with `rollcall login --oidc --context " + name + "`";
      return new ConfigurationException("the login of context " + name + " has expired: " + again);
    }

    private boolean renew(String saved, Login old) {
      Issuer.Renewal renewal = Issuer.renew(old, clock.instant());
      if (renewal == null) return false;
      token = renewal.token();
      login = renewal.login();
      refused = null;
      isFinal = false;
      try {
        Contexts.save(file, name, token, login);
      } catch (ConfigurationException unwritable) {
        // The file may be read-only, such as a mounted secret. Continue with the new refresh token in memory.
        unsavedOf = saved;
        unsaved = login.refreshToken();
      }
      return true;
    }

    private void pause() {
      try {
        Thread.sleep(SCAN_EVERY);
      } catch (InterruptedException interrupt) {
        throw Failures.interrupted(interrupt);
      }
    }

    private boolean isGood(String text, Login it) {
      return text != null && it != null && it.expiresAt().minus(MARGIN).isAfter(clock.instant());
    }
  }
}
