package rollcall

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
	schedulerv1 "rollcall.dev/go/gen/rollcall/scheduler/v1"
)

// Watch iterates over the nodes that match the request, which can be nil, and then over their changes. It starts with a
// snapshot. It continues across restarts of the control plane, until the context is done or until a failure that a
// retry cannot fix. It keeps the nodes in memory to return each change once.
func (n Nodes) Watch(ctx context.Context, request *registryv1.WatchNodesRequest) iter.Seq2[Change[*nodev1.Node], error] {
	return func(yield func(Change[*nodev1.Node], error) bool) {
		view := newNodeView(request)
		watch[registryv1.WatchNodesResponse, *nodev1.Node]{
			open: func(ctx context.Context) (grpc.ServerStreamingClient[registryv1.WatchNodesResponse], error) {
				return n.client.RegistryService.WatchNodes(ctx, view.nextRequest())
			},
			apply:    view.apply,
			isMended: view.failed,
		}.all(ctx)(yield)
	}
}

// Watch iterates over the jobs that match the request, which can be nil, and then over their changes, as Nodes.Watch
// does.
func (j Jobs) Watch(ctx context.Context, request *schedulerv1.WatchJobsRequest) iter.Seq2[Change[*schedulerv1.Job], error] {
	return func(yield func(Change[*schedulerv1.Job], error) bool) {
		view := newWatchView[*schedulerv1.Job]()
		watch[schedulerv1.WatchJobsResponse, *schedulerv1.Job]{
			open: func(ctx context.Context) (grpc.ServerStreamingClient[schedulerv1.WatchJobsResponse], error) {
				view.startSnapshot()
				return j.client.JobService.WatchJobs(ctx, request)
			},
			apply: func(message *schedulerv1.WatchJobsResponse) (changes []Change[*schedulerv1.Job]) {
				for _, name := range message.GetDeletedJobs() {
					changes = view.remove(changes, name)
				}
				for _, job := range message.GetJobs() {
					changes = view.put(changes, job.GetSpec().GetName(), job)
				}
				if message.GetSnapshotDone() {
					changes = view.completeSnapshot(changes)
				}
				return changes
			},
			isMended: func(*Error) bool { return false },
		}.all(ctx)(yield)
	}
}

// Watch iterates over the executions that match the request, which can be nil, and then over their changes, as
// Nodes.Watch does. The server does not report that an execution is deleted with its job. Watch returns such a removal
// only after the stream was reopened.
func (e Executions) Watch(ctx context.Context, request *schedulerv1.WatchExecutionsRequest) iter.Seq2[Change[*schedulerv1.Execution], error] {
	return func(yield func(Change[*schedulerv1.Execution], error) bool) {
		view := newWatchView[*schedulerv1.Execution]()
		watch[schedulerv1.WatchExecutionsResponse, *schedulerv1.Execution]{
			open: func(ctx context.Context) (grpc.ServerStreamingClient[schedulerv1.WatchExecutionsResponse], error) {
				view.startSnapshot()
				return e.client.JobService.WatchExecutions(ctx, request)
			},
			apply: func(message *schedulerv1.WatchExecutionsResponse) (changes []Change[*schedulerv1.Execution]) {
				for _, execution := range message.GetExecutions() {
					changes = view.put(changes, execution.GetId(), execution)
				}
				if message.GetSnapshotDone() {
					changes = view.completeSnapshot(changes)
				}
				return changes
			},
			isMended: func(*Error) bool { return false },
		}.all(ctx)(yield)
	}
}
