package rollcall

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	adminv1 "rollcall.dev/go/gen/rollcall/admin/v1"
	eventsv1 "rollcall.dev/go/gen/rollcall/events/v1"
	healthv1 "rollcall.dev/go/gen/rollcall/health/v1"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	registryv1 "rollcall.dev/go/gen/rollcall/registry/v1"
	schedulerv1 "rollcall.dev/go/gen/rollcall/scheduler/v1"
)

// A pageRequest requests a page.
type pageRequest interface {
	proto.Message
	GetPageToken() string
}

// A page is one part of a list.
type page interface {
	proto.Message
	GetNextPageToken() string
}

// pages iterates over the items of all pages of a list. It stops after the first failure. A nil request lists
// everything.
func pages[Q pageRequest, P page, Item any](ctx context.Context, list func(context.Context, Q, ...grpc.CallOption) (P, error), request Q, items func(P) []Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		next := request.ProtoReflect().New().Interface()
		proto.Merge(next, request)
		token := next.ProtoReflect().Descriptor().Fields().ByName("page_token")
		for {
			page, err := list(ctx, next.(Q))
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items(page) {
				if !yield(item, nil) {
					return
				}
			}
			if page.GetNextPageToken() == "" {
				return
			}
			next.ProtoReflect().Set(token, protoreflect.ValueOfString(page.GetNextPageToken()))
		}
	}
}

// Nodes has helpers for nodes.
type Nodes struct{ client *Client }

// Nodes returns the helpers for nodes.
func (c *Client) Nodes() Nodes { return Nodes{c} }

// List iterates over the nodes that match the request, on all pages. The request can be nil.
func (n Nodes) List(ctx context.Context, request *registryv1.ListNodesRequest) iter.Seq2[*nodev1.Node, error] {
	return pages(ctx, n.client.RegistryService.ListNodes, request, (*registryv1.ListNodesResponse).GetNodes)
}

// ListDeleted iterates over the tombstones of removed nodes, the newest removal first, on all pages. The request can be nil.
func (n Nodes) ListDeleted(ctx context.Context, request *registryv1.ListDeletedNodesRequest) iter.Seq2[*registryv1.DeletedNode, error] {
	return pages(ctx, n.client.RegistryService.ListDeletedNodes, request, (*registryv1.ListDeletedNodesResponse).GetDeletedNodes)
}

// ListHealth iterates over the health of nodes, each with its latest sample, on all pages. The request can be nil.
func (n Nodes) ListHealth(ctx context.Context, request *healthv1.ListNodeHealthRequest) iter.Seq2[*healthv1.NodeHealth, error] {
	return pages(ctx, n.client.HealthQueryService.ListNodeHealth, request, (*healthv1.ListNodeHealthResponse).GetNodes)
}

// ListBans iterates over the bans, on all pages. The request can be nil.
func (n Nodes) ListBans(ctx context.Context, request *adminv1.ListBansRequest) iter.Seq2[*adminv1.Ban, error] {
	return pages(ctx, n.client.AdminService.ListBans, request, (*adminv1.ListBansResponse).GetBans)
}

// Get returns the node with this exact id.
func (n Nodes) Get(ctx context.Context, id string) (*nodev1.Node, error) {
	answer, err := n.client.RegistryService.GetNode(ctx, &registryv1.GetNodeRequest{Node: id})
	return answer.GetNode(), err
}

// Jobs has helpers for jobs.
type Jobs struct{ client *Client }

// Jobs returns the helpers for jobs.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// List iterates over the jobs that match the request, by name, on all pages. The request can be nil.
func (j Jobs) List(ctx context.Context, request *schedulerv1.ListJobsRequest) iter.Seq2[*schedulerv1.Job, error] {
	return pages(ctx, j.client.JobService.ListJobs, request, (*schedulerv1.ListJobsResponse).GetJobs)
}

// ListVersions iterates over the kept versions of a job, the newest first, on all pages. The request can be nil.
func (j Jobs) ListVersions(ctx context.Context, request *schedulerv1.ListJobVersionsRequest) iter.Seq2[*schedulerv1.JobVersion, error] {
	return pages(ctx, j.client.JobService.ListJobVersions, request, (*schedulerv1.ListJobVersionsResponse).GetVersions)
}

// ListOwners iterates over the owners of jobs, by name, on all pages. The request can be nil.
func (j Jobs) ListOwners(ctx context.Context, request *schedulerv1.ListOwnersRequest) iter.Seq2[*schedulerv1.JobOwner, error] {
	return pages(ctx, j.client.JobService.ListOwners, request, (*schedulerv1.ListOwnersResponse).GetOwners)
}

// Get returns the job with this name.
func (j Jobs) Get(ctx context.Context, name string) (*schedulerv1.Job, error) {
	answer, err := j.client.JobService.GetJob(ctx, &schedulerv1.GetJobRequest{Name: name})
	return answer.GetJob(), err
}

// Executions has helpers for executions.
type Executions struct{ client *Client }

// Executions returns the helpers for executions.
func (c *Client) Executions() Executions { return Executions{c} }

// List iterates over the executions that match the request, the newest first, on all pages. The request can be nil.
func (e Executions) List(ctx context.Context, request *schedulerv1.ListExecutionsRequest) iter.Seq2[*schedulerv1.Execution, error] {
	return pages(ctx, e.client.JobService.ListExecutions, request, (*schedulerv1.ListExecutionsResponse).GetExecutions)
}

// Get returns the execution with this exact id.
func (e Executions) Get(ctx context.Context, id string) (*schedulerv1.Execution, error) {
	answer, err := e.client.JobService.GetExecution(ctx, &schedulerv1.GetExecutionRequest{Execution: id})
	return answer.GetExecution(), err
}

// Events has helpers for the event log.
type Events struct{ client *Client }

// Events returns the helpers for the event log.
func (c *Client) Events() Events { return Events{c} }

// List iterates over the events that match the request, on all pages. The request can be nil.
func (e Events) List(ctx context.Context, request *eventsv1.ListEventsRequest) iter.Seq2[*eventsv1.Event, error] {
	return pages(ctx, e.client.EventService.ListEvents, request, (*eventsv1.ListEventsResponse).GetEvents)
}

// Webhooks has helpers for webhooks.
type Webhooks struct{ client *Client }

// Webhooks returns the helpers for webhooks.
func (c *Client) Webhooks() Webhooks { return Webhooks{c} }

// List iterates over the webhooks, on all pages. The request can be nil.
func (w Webhooks) List(ctx context.Context, request *eventsv1.ListWebhooksRequest) iter.Seq2[*eventsv1.Webhook, error] {
	return pages(ctx, w.client.WebhookService.ListWebhooks, request, (*eventsv1.ListWebhooksResponse).GetWebhooks)
}

// Get returns the webhook with this name.
func (w Webhooks) Get(ctx context.Context, name string) (*eventsv1.Webhook, error) {
	answer, err := w.client.WebhookService.GetWebhook(ctx, &eventsv1.GetWebhookRequest{Name: name})
	return answer.GetWebhook(), err
}

// JoinTokens has helpers for join tokens.
type JoinTokens struct{ client *Client }

// JoinTokens returns the helpers for join tokens.
func (c *Client) JoinTokens() JoinTokens { return JoinTokens{c} }

// List iterates over the join tokens, on all pages. The request can be nil.
func (j JoinTokens) List(ctx context.Context, request *adminv1.ListJoinTokensRequest) iter.Seq2[*adminv1.JoinToken, error] {
	return pages(ctx, j.client.JoinTokenService.ListJoinTokens, request, (*adminv1.ListJoinTokensResponse).GetTokens)
}

// Get returns the join token with this id.
func (j JoinTokens) Get(ctx context.Context, id string) (*adminv1.JoinToken, error) {
	answer, err := j.client.JoinTokenService.GetJoinToken(ctx, &adminv1.GetJoinTokenRequest{Id: id})
	return answer.GetToken(), err
}

// AccessTokens has helpers for access tokens.
type AccessTokens struct{ client *Client }

// AccessTokens returns the helpers for access tokens.
func (c *Client) AccessTokens() AccessTokens { return AccessTokens{c} }

// List iterates over the access tokens, on all pages. The request can be nil.
func (a AccessTokens) List(ctx context.Context, request *adminv1.ListAccessTokensRequest) iter.Seq2[*adminv1.AccessToken, error] {
	return pages(ctx, a.client.AccessService.ListAccessTokens, request, (*adminv1.ListAccessTokensResponse).GetAccessTokens)
}

// HealthPolicies has helpers for health policies.
type HealthPolicies struct{ client *Client }

// HealthPolicies returns the helpers for health policies.
func (c *Client) HealthPolicies() HealthPolicies { return HealthPolicies{c} }

// List iterates over the health policies, on all pages. The request can be nil.
func (h HealthPolicies) List(ctx context.Context, request *adminv1.ListHealthPoliciesRequest) iter.Seq2[*adminv1.HealthPolicy, error] {
	return pages(ctx, h.client.HealthPolicyService.ListHealthPolicies, request, (*adminv1.ListHealthPoliciesResponse).GetPolicies)
}

// AuditEntries has helpers for the audit log.
type AuditEntries struct{ client *Client }

// AuditEntries returns the helpers for the audit log.
func (c *Client) AuditEntries() AuditEntries { return AuditEntries{c} }

// List iterates over the audit entries that match the request, on all pages. The request can be nil.
func (a AuditEntries) List(ctx context.Context, request *adminv1.ListAuditEntriesRequest) iter.Seq2[*adminv1.AuditEntry, error] {
	return pages(ctx, a.client.AuditService.ListAuditEntries, request, (*adminv1.ListAuditEntriesResponse).GetEntries)
}
