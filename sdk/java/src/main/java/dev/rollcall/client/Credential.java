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

/** What proves to one service who calls. */
interface Credential {
  /** The token to send now; null for none. Throws ConfigurationException, and RollcallException for an issuer. */
  String token();

  /** No token. */
  Credential NONE = () -> null;

  /** The token itself. */
  static Credential of(String token) {
    return token::strip;
  }

  /** A file that holds it, read each time: it may be replaced while the program runs. */
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

  /** The token of a context that logged in by an issuer: renewed and saved before it expires, once for all calls. */
  static Credential login(Path file, String context, Clock clock) {
    return new Renewed(file, context, clock);
  }

  /** See {@link #login}. */
  final class Renewed implements Credential {
    // A token that expires sooner is renewed, or it would expire during the call.
    private static final Duration MARGIN = Duration.ofSeconds(30);
    // A refresh token that the issuer refuses may have been used by another program a moment ago, which then saves the
    // next one: the file is read again so often, and so many milliseconds apart. After that it counts as refused for so
    // long without a word to the issuer.
    private static final int LOOKS = 20;
    private static final long LOOK_EVERY = 100;
    private static final Duration REFUSAL_LASTS = Duration.ofSeconds(30);

    private final Path file;
    private final String name;
    private final Clock clock;
    private String token;
    private Login login;
    // The refresh token that the file has, and the one that took its place and could not be saved.
    private String unsavedOf;
    private String unsaved;
    // The refresh token that the issuer has refused, and when; final once the file has kept it for all looks of a call.
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

    /** The token; null where another look may find what another program saves. */
    private synchronized String look(boolean isLast) {
      if (isGood(token, login)) return token;
      // The command line or another program may have renewed it meanwhile.
      Context context = Contexts.read(file, name);
      if (context.login() == null) throw new ConfigurationException("context " + name + " has no login any more");
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
      return new ConfigurationException("the login of context " + name + " is over: " + again);
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
        // A file that cannot be written, of a secret for example, keeps no program from what it has: this one goes on
        // with the next refresh token.
        unsavedOf = saved;
        unsaved = login.refreshToken();
      }
      return true;
    }

    private void pause() {
      try {
        Thread.sleep(LOOK_EVERY);
      } catch (InterruptedException interrupt) {
        throw Failures.interrupted(interrupt);
      }
    }

    private boolean isGood(String text, Login it) {
      return text != null && it != null && it.expiresAt().minus(MARGIN).isAfter(clock.instant());
    }
  }
}
