package rollcall_test

import (
	"context"
	"fmt"
	"log"

	"rollcall.dev/go"
	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
)

// These examples run only in TestClient, against its control plane, which has one compute node.

func newClient() *rollcall.Client {
	client, err := rollcall.New(rollcall.Config{}) // finds the control plane as the command line does
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func ExampleClient() {
	client := newClient()
	defer client.Close()
	_, err := client.AdminService.CordonNode(context.Background(), &adminv1.CordonNodeRequest{Node: "nowhere", Reason: "fan"})
	fmt.Println(rollcall.ReasonOf(err) == rollcall.ReasonNodeNotFound)
	// Output: true
}

func ExampleNodes_List() {
	client := newClient()
	defer client.Close()
	request := &registryv1.ListNodesRequest{Types: []nodev1.NodeType{nodev1.NodeType_NODE_TYPE_COMPUTE}}
	for node, err := range client.Nodes().List(context.Background(), request) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(node.GetMembership().GetState())
	}
	// Output: MEMBERSHIP_STATE_APPROVED
}

func ExampleNodes_Get() {
	client := newClient()
	defer client.Close()
	_, err := client.Nodes().Get(context.Background(), "nowhere")
	fmt.Println(rollcall.ReasonOf(err))
	// Output: NODE_NOT_FOUND
}

func ExampleNodes_Watch() {
	client := newClient()
	defer client.Close()
	for change, err := range client.Nodes().Watch(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(change.Before == nil, change.After.GetMembership().GetState())
		break
	}
	// Output: true MEMBERSHIP_STATE_APPROVED
}

func ExampleJobs_List() {
	client := newClient()
	defer client.Close()
	for job, err := range client.Jobs().List(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.GetSpec().GetName())
	}
	// Output:
}

func ExampleEvents_Watch() {
	client := newClient()
	defer client.Close()
	watch, err := client.Events().Watch(&eventsv1.WatchEventsRequest{
		Types: []string{"node.registered"},
		Start: &eventsv1.WatchEventsRequest_FromBeginning{FromBeginning: true},
	}, "")
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range watch.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.GetType(), watch.Bookmark() != "")
		break
	}
	// Output: node.registered true
}
