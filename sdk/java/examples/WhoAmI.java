import dev.rollcall.admin.v1.WhoAmIRequest;
import dev.rollcall.client.Client;
import dev.rollcall.client.ClientOptions;

/**
 * Ask the control plane who the caller is. Without arguments, the client finds the control plane and the
 * token as the command line does. With arguments, it trusts the authority with the given fingerprint.
 *
 * <p>java -cp LIBRARIES WhoAmI.java [SERVER FINGERPRINT]
 */
public final class WhoAmI {
  public static void main(String[] words) {
    ClientOptions options = new ClientOptions();
    if (words.length == 2) options.server(words[0]).caFingerprint(words[1]);
    try (Client client = Client.create(options)) {
      System.out.println(client.access.whoAmI(WhoAmIRequest.getDefaultInstance()).getActor());
    }
  }
}
