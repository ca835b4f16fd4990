// Follow prints each event exactly once, across restarts of the control plane and of this program.
//
// go run ./examples/follow SERVER TOKEN_FILE [BOOKMARK_FILE]
package main

import (
	"context"
	"fmt"
	"os"

	"rollcall.dev/go"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return fmt.Errorf("usage: follow SERVER TOKEN_FILE [BOOKMARK_FILE]")
	}
	client, err := rollcall.New(rollcall.Config{Server: arguments[0], TokenFile: arguments[1]})
	if err != nil {
		return err
	}
	defer client.Close()
	saved, file := "", ""
	if len(arguments) > 2 {
		file = arguments[2]
		text, _ := os.ReadFile(file)
		saved = string(text)
	}
	request := &eventsv1.WatchEventsRequest{Start: &eventsv1.WatchEventsRequest_FromBeginning{FromBeginning: true}}
	watch, err := client.Events().Watch(request, saved)
	if err != nil {
		return err
	}
	for event, err := range watch.All(context.Background()) {
		if err != nil {
			return err
		}
		fmt.Println(event.GetRevision(), event.GetType(), event.GetSubject())
		if file == "" {
			continue
		}
		// Save the bookmark together with the result of handling its event. A program that stops between the two
		// handles the event again.
		if err := os.WriteFile(file, []byte(watch.Bookmark()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
