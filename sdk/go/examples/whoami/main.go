// Whoami asks the control plane who the caller is. Without arguments, the client finds the control plane and the token
// as the command line does. With arguments, it trusts the authority with the given fingerprint.
//
//	go run ./examples/whoami [SERVER FINGERPRINT]
package main

import (
	"context"
	"fmt"
	"os"

	"rollcall.dev/go"
	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	config := rollcall.Config{}
	if len(arguments) == 2 {
		config.Server, config.CAFingerprint = arguments[0], arguments[1]
	}
	client, err := rollcall.New(config)
	if err != nil {
		return err
	}
	defer client.Close()
	me, err := client.AccessService.WhoAmI(context.Background(), &adminv1.WhoAmIRequest{})
	if err != nil {
		return err
	}
	fmt.Println(me.GetActor())
	return nil
}
