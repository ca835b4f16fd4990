import dev.rollcall.client.Client;
import dev.rollcall.client.ClientOptions;
import dev.rollcall.client.EventWatch;
import dev.rollcall.events.v1.Event;
import dev.rollcall.events.v1.WatchEventsRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Follow the log. Prints each event exactly once, across restarts of the control plane and of this
 * program.
 *
 * <p>java -cp LIBRARIES Follow.java SERVER TOKEN_FILE [BOOKMARK_FILE]
 */
public final class Follow {
  public static void main(String[] words) throws IOException {
    Path file = words.length > 2 ? Path.of(words[2]) : null;
    String saved = file != null && Files.exists(file) ? Files.readString(file) : null;
    WatchEventsRequest request = WatchEventsRequest.newBuilder().setFromBeginning(true).build();
    ClientOptions options = new ClientOptions().server(words[0]).tokenFile(Path.of(words[1]));
    try (Client client = Client.create(options);
        EventWatch watch = client.watchEvents(request, saved)) {
      for (Event event : watch) {
        System.out.println(event.getRevision() + " " + event.getType() + " " + event.getSubject());
        // Save the bookmark together with the result of handling its event. A program that stops between
        // the two handles the event again.
        if (file != null) Files.writeString(file, watch.bookmark());
      }
    }
  }
}
