package dev.rollcall.client;

import dev.rollcall.client.Contexts.Context;
import dev.rollcall.client.Contexts.Login;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;

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

    private final Path file;
    private final String name;
    private final Clock clock;
    private String token;
    private Login login;

    Renewed(Path file, String name, Clock clock) {
      this.file = file;
      this.name = name;
      this.clock = clock;
    }

    @Override
    public synchronized String token() {
      if (isGood(token, login)) return token;
      // The command line or another program may have renewed it meanwhile.
      Context context = Contexts.read(file, name);
      if (context.login() == null) throw new ConfigurationException("context " + name + " has no login any more");
      if (!isGood(context.token(), context.login())) return renew(context.login());
      token = context.token();
      login = context.login();
      return token;
    }

    private String renew(Login old) {
      Issuer.Renewal renewal = old.refreshToken() == null ? null : Issuer.renew(old, clock.instant());
      if (renewal == null) {
        String again = "log in again with `rollcall login --oidc --context " + name + "`";
        throw new ConfigurationException("the login of context " + name + " is over: " + again);
      }
      token = renewal.token();
      login = renewal.login();
      Contexts.save(file, name, token, login);
      return token;
    }

    private boolean isGood(String text, Login it) {
      return text != null && it != null && it.expiresAt().minus(MARGIN).isAfter(clock.instant());
    }
  }
}
