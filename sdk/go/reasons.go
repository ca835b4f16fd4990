// Code generated from the schema. DO NOT EDIT.

package rollcall

// Reasons of errors: the values of Error.Reason. A server of a later release may send others.
const (
	// ReasonInvalidRequest: [INVALID_ARGUMENT] Fields are invalid; BadRequest lists each violation.
	ReasonInvalidRequest = "INVALID_REQUEST"
	// ReasonInvalidNodeID: [INVALID_ARGUMENT] The node id is not 1-63 characters of [A-Za-z0-9._-] starting with a letter or digit.
	ReasonInvalidNodeID = "INVALID_NODE_ID"
	// ReasonInvalidLabel: [INVALID_ARGUMENT] A label violates Kubernetes' syntax or has the protected prefix "rollcall.io/".
	ReasonInvalidLabel = "INVALID_LABEL"
	// ReasonInvalidSelector: [INVALID_ARGUMENT] A label selector cannot be parsed.
	ReasonInvalidSelector = "INVALID_SELECTOR"
	// ReasonInvalidPageToken: [INVALID_ARGUMENT] The page token was not returned by this method for the same filter and order.
	ReasonInvalidPageToken = "INVALID_PAGE_TOKEN"
	// ReasonInvalidOrderBy: [INVALID_ARGUMENT] order_by does not name a sortable column.
	ReasonInvalidOrderBy = "INVALID_ORDER_BY"
	// ReasonInvalidPublicKey: [INVALID_ARGUMENT] A public key is not a raw Ed25519 key of 32 bytes, is not in its canonical encoding, or is a
	// point of small order, for which anyone can sign.
	ReasonInvalidPublicKey = "INVALID_PUBLIC_KEY"
	// ReasonNodeNotFound: [NOT_FOUND] No node has this id. As with every reason for an unknown name, metadata "suggestion" has the name that
	// the caller probably meant, if a similar name exists and the caller can list objects of this kind.
	ReasonNodeNotFound = "NODE_NOT_FOUND"
	// ReasonAmbiguousNode: [FAILED_PRECONDITION] Several nodes share this prefix; the message names up to three.
	ReasonAmbiguousNode = "AMBIGUOUS_NODE"
	// ReasonNodeAlreadyApproved: [FAILED_PRECONDITION] The node is already approved.
	ReasonNodeAlreadyApproved = "NODE_ALREADY_APPROVED"
	// ReasonNodeAlreadyRejected: [FAILED_PRECONDITION] The node is already rejected.
	ReasonNodeAlreadyRejected = "NODE_ALREADY_REJECTED"
	// ReasonNodeRejected: [PERMISSION_DENIED] An operator rejected this node; the message has the operator's reason.
	ReasonNodeRejected = "NODE_REJECTED"
	// ReasonNodeIsOrchestrator: [FAILED_PRECONDITION] A live control-plane process cannot be rejected or deleted.
	ReasonNodeIsOrchestrator = "NODE_IS_ORCHESTRATOR"
	// ReasonNodeAlreadyCordoned: [FAILED_PRECONDITION] The node is already cordoned.
	ReasonNodeAlreadyCordoned = "NODE_ALREADY_CORDONED"
	// ReasonNodeNotCordoned: [FAILED_PRECONDITION] The node is not cordoned.
	ReasonNodeNotCordoned = "NODE_NOT_CORDONED"
	// ReasonNodeAlreadyMarked: [FAILED_PRECONDITION] An operator has already marked the node unhealthy.
	ReasonNodeAlreadyMarked = "NODE_ALREADY_MARKED"
	// ReasonNodeNotMarked: [FAILED_PRECONDITION] No operator has marked the node unhealthy.
	ReasonNodeNotMarked = "NODE_NOT_MARKED"
	// ReasonEtagMismatch: [ABORTED] The node changed since the etag was read.
	ReasonEtagMismatch = "ETAG_MISMATCH"
	// ReasonNodeBanned: [PERMISSION_DENIED] An operator banned this node id or this key; the message has the operator's reason. The node
	// can join again once the ban is lifted.
	ReasonNodeBanned = "NODE_BANNED"
	// ReasonNodeAlreadyBanned: [FAILED_PRECONDITION] The node id and its key are already banned.
	ReasonNodeAlreadyBanned = "NODE_ALREADY_BANNED"
	// ReasonNodeNotBanned: [FAILED_PRECONDITION] Neither the node id nor the key is banned.
	ReasonNodeNotBanned = "NODE_NOT_BANNED"
	// ReasonNodeNotRegistered: [NOT_FOUND] The node must register before it can connect.
	ReasonNodeNotRegistered = "NODE_NOT_REGISTERED"
	// ReasonNodeDeleted: [NOT_FOUND] An operator deleted the node while it was connected.
	ReasonNodeDeleted = "NODE_DELETED"
	// ReasonNodeKeyMismatch: [PERMISSION_DENIED] The node id belongs to another key.
	ReasonNodeKeyMismatch = "NODE_KEY_MISMATCH"
	// ReasonNodeKeyInUse: [PERMISSION_DENIED] The key belongs to another node id.
	ReasonNodeKeyInUse = "NODE_KEY_IN_USE"
	// ReasonProofInvalid: [UNAUTHENTICATED] The proof is not a valid signature of this call and nonce by the node's key.
	ReasonProofInvalid = "PROOF_INVALID"
	// ReasonChallengeInvalid: [UNAUTHENTICATED] The nonce is unknown, too old, or was used before.
	ReasonChallengeInvalid = "CHALLENGE_INVALID"
	// ReasonNextKeyProofInvalid: [UNAUTHENTICATED] The signature by the next key of a rotation is not valid: the next key must sign the same text as
	// the current key.
	ReasonNextKeyProofInvalid = "NEXT_KEY_PROOF_INVALID"
	// ReasonKeyRotationAlreadyRequired: [FAILED_PRECONDITION] The node has already been required to rotate its key and has not done so yet.
	ReasonKeyRotationAlreadyRequired = "KEY_ROTATION_ALREADY_REQUIRED"
	// ReasonNodeKeyRetired: [UNAUTHENTICATED] The stream was opened with a key that the node has since replaced; open a new stream with the
	// current key.
	ReasonNodeKeyRetired = "NODE_KEY_RETIRED"
	// ReasonTokenMissing: [UNAUTHENTICATED] The call carries no access token.
	ReasonTokenMissing = "TOKEN_MISSING"
	// ReasonTokenInvalid: [UNAUTHENTICATED] The access token is unknown, malformed or too long. A token of an issuer is also refused if it is
	// for another audience, is not valid at this time, or identifies the caller by an unverified e-mail address.
	ReasonTokenInvalid = "TOKEN_INVALID"
	// ReasonRoleTooLow: [PERMISSION_DENIED] The caller's role does not allow this method.
	ReasonRoleTooLow = "ROLE_TOO_LOW"
	// ReasonTokenExpired: [UNAUTHENTICATED] The token was valid but has expired.
	ReasonTokenExpired = "TOKEN_EXPIRED"
	// ReasonTokenRevoked: [UNAUTHENTICATED] The access token was valid but has been revoked.
	ReasonTokenRevoked = "TOKEN_REVOKED"
	// ReasonAccessTokenNotFound: [NOT_FOUND] No access token has this id.
	ReasonAccessTokenNotFound = "ACCESS_TOKEN_NOT_FOUND"
	// ReasonAccessTokenAlreadyRevoked: [FAILED_PRECONDITION] The access token is already revoked.
	ReasonAccessTokenAlreadyRevoked = "ACCESS_TOKEN_ALREADY_REVOKED"
	// ReasonTooManyFailures: [RESOURCE_EXHAUSTED] Too many attempts with invalid credentials came from this address; RetryInfo says when to try
	// again.
	ReasonTooManyFailures = "TOO_MANY_FAILURES"
	// ReasonRegistrationLimited: [RESOURCE_EXHAUSTED] Nodes register faster than the control plane's configured limit; RetryInfo says when to try
	// again.
	ReasonRegistrationLimited = "REGISTRATION_LIMITED"
	// ReasonTooManyStreams: [RESOURCE_EXHAUSTED] This identity has reached its limit of open streams; end one first. RetryInfo says when to try
	// again.
	ReasonTooManyStreams = "TOO_MANY_STREAMS"
	// ReasonHelloRequired: [FAILED_PRECONDITION] The first frame of a heartbeat stream must be a Hello.
	ReasonHelloRequired = "HELLO_REQUIRED"
	// ReasonHelloRepeated: [FAILED_PRECONDITION] A heartbeat stream has exactly one Hello.
	ReasonHelloRepeated = "HELLO_REPEATED"
	// ReasonSessionSuperseded: [ABORTED] Another stream of the same node took over the session, with a higher epoch.
	ReasonSessionSuperseded = "SESSION_SUPERSEDED"
	// ReasonStreamStale: [DEADLINE_EXCEEDED] Nothing was received within the threshold; open a new stream.
	ReasonStreamStale = "STREAM_STALE"
	// ReasonPeerTooSlow: [RESOURCE_EXHAUSTED] The peer does not read the messages sent to it.
	ReasonPeerTooSlow = "PEER_TOO_SLOW"
	// ReasonRevisionCompacted: [OUT_OF_RANGE] Events after the requested revision have been compacted, or the token belongs to another log.
	// metadata has compactedRevision and listAfterRevision: list or watch again from there.
	ReasonRevisionCompacted = "REVISION_COMPACTED"
	// ReasonWatcherTooSlow: [RESOURCE_EXHAUSTED] The client reads the watch too slowly; metadata has the resumeToken to continue from.
	ReasonWatcherTooSlow = "WATCHER_TOO_SLOW"
	// ReasonInvalidResumeToken: [INVALID_ARGUMENT] A resume token was not issued by this cluster, or the requested revision is ahead of the log.
	ReasonInvalidResumeToken = "INVALID_RESUME_TOKEN"
	// ReasonSessionTokenInvalid: [UNAUTHENTICATED] The token of a unary session was not issued by this cluster or belongs to another node; open a
	// session without a token.
	ReasonSessionTokenInvalid = "SESSION_TOKEN_INVALID"
	// ReasonSequenceNotRising: [FAILED_PRECONDITION] The sequence of a unary heartbeat must be higher than the previous one; metadata has
	// lastSequence.
	ReasonSequenceNotRising = "SEQUENCE_NOT_RISING"
	// ReasonServerShuttingDown: [UNAVAILABLE] The server is shutting down; reconnect to it or to another one.
	ReasonServerShuttingDown = "SERVER_SHUTTING_DOWN"
	// ReasonStoreUnavailable: [UNAVAILABLE] The store is currently unreachable.
	ReasonStoreUnavailable = "STORE_UNAVAILABLE"
	// ReasonOverloaded: [RESOURCE_EXHAUSTED] A queue is full; RetryInfo says when to try again.
	ReasonOverloaded = "OVERLOADED"
	// ReasonMessageTooLarge: [RESOURCE_EXHAUSTED] The message is larger than the limit.
	ReasonMessageTooLarge = "MESSAGE_TOO_LARGE"
	// ReasonUnknownMethod: [UNIMPLEMENTED] The server does not implement this method.
	ReasonUnknownMethod = "UNKNOWN_METHOD"
	// ReasonDeadlineExceeded: [DEADLINE_EXCEEDED] The call took longer than its deadline.
	ReasonDeadlineExceeded = "DEADLINE_EXCEEDED"
	// ReasonCancelled: [CANCELLED] The caller disconnected.
	ReasonCancelled = "CANCELLED"
	// ReasonMalformedMessage: [INVALID_ARGUMENT] The message cannot be decoded.
	ReasonMalformedMessage = "MALFORMED_MESSAGE"
	// ReasonInternal: [INTERNAL] A bug in Rollcall; the server's log has details under the request id.
	ReasonInternal = "INTERNAL"
	// ReasonIssuerUnavailable: [UNAVAILABLE] The OpenID Connect issuer of the token is currently unreachable, so the token cannot be checked.
	ReasonIssuerUnavailable = "ISSUER_UNAVAILABLE"
	// ReasonJoinTokenRequired: [UNAUTHENTICATED] A new node must present a join token.
	ReasonJoinTokenRequired = "JOIN_TOKEN_REQUIRED"
	// ReasonJoinTokenInvalid: [UNAUTHENTICATED] The join token is malformed, or is not a token of this cluster.
	ReasonJoinTokenInvalid = "JOIN_TOKEN_INVALID"
	// ReasonJoinTokenExpired: [PERMISSION_DENIED] The join token has expired.
	ReasonJoinTokenExpired = "JOIN_TOKEN_EXPIRED"
	// ReasonJoinTokenRevoked: [PERMISSION_DENIED] An operator revoked the join token.
	ReasonJoinTokenRevoked = "JOIN_TOKEN_REVOKED"
	// ReasonJoinTokenUsedUp: [PERMISSION_DENIED] The join token has admitted its maximum number of machines.
	ReasonJoinTokenUsedUp = "JOIN_TOKEN_USED_UP"
	// ReasonJoinTokenNameMismatch: [PERMISSION_DENIED] The join token does not admit a node with this id; metadata has the pattern.
	ReasonJoinTokenNameMismatch = "JOIN_TOKEN_NAME_MISMATCH"
	// ReasonJoinTokenWrongCluster: [PERMISSION_DENIED] The join token was issued by another cluster.
	ReasonJoinTokenWrongCluster = "JOIN_TOKEN_WRONG_CLUSTER"
	// ReasonJoinTokenNotFound: [NOT_FOUND] No join token has this id, or its record was deleted.
	ReasonJoinTokenNotFound = "JOIN_TOKEN_NOT_FOUND"
	// ReasonJoinTokenAlreadyRevoked: [FAILED_PRECONDITION] The join token is already revoked.
	ReasonJoinTokenAlreadyRevoked = "JOIN_TOKEN_ALREADY_REVOKED"
	// ReasonHealthPolicyNotFound: [NOT_FOUND] No health policy is set for this scope.
	ReasonHealthPolicyNotFound = "HEALTH_POLICY_NOT_FOUND"
	// ReasonHealthPolicyContradiction: [INVALID_ARGUMENT] The values of a health policy contradict each other, or values of other policies that apply to
	// the same nodes; the message names them.
	ReasonHealthPolicyContradiction = "HEALTH_POLICY_CONTRADICTION"
	// ReasonTooManyHealthPolicies: [FAILED_PRECONDITION] The limit on health policies of this kind is reached; delete one first.
	ReasonTooManyHealthPolicies = "TOO_MANY_HEALTH_POLICIES"
	// ReasonReplicaCredentialsInvalid: [UNAUTHENTICATED] The internal address of a replica serves only other replicas of its cluster; metadata has
	// serverTimeMs.
	ReasonReplicaCredentialsInvalid = "REPLICA_CREDENTIALS_INVALID"
	// ReasonOwnerUnavailable: [UNAVAILABLE] The replica that holds the node's session is not responding; RetryInfo says when to try again.
	ReasonOwnerUnavailable = "OWNER_UNAVAILABLE"
	// ReasonBrakeGroupNotFound: [NOT_FOUND] No health replica knows nodes of this brake group; metadata has the existing groups.
	ReasonBrakeGroupNotFound = "BRAKE_GROUP_NOT_FOUND"
	// ReasonBrakeAlreadyFrozen: [FAILED_PRECONDITION] The group's brake is already frozen; metadata says who froze it.
	ReasonBrakeAlreadyFrozen = "BRAKE_ALREADY_FROZEN"
	// ReasonBrakeNotFrozen: [FAILED_PRECONDITION] The group's brake is not frozen, so there is no freeze to lift.
	ReasonBrakeNotFrozen = "BRAKE_NOT_FROZEN"
	// ReasonBrakeClusterFrozen: [FAILED_PRECONDITION] The cluster's brake is frozen, which also freezes this group: release the cluster first.
	ReasonBrakeClusterFrozen = "BRAKE_CLUSTER_FROZEN"
	// ReasonNodeHardwareUnchanged: [FAILED_PRECONDITION] The node's current hardware is already accepted.
	ReasonNodeHardwareUnchanged = "NODE_HARDWARE_UNCHANGED"
	// ReasonNodeHardwareUnknown: [FAILED_PRECONDITION] The node has not reported its hardware yet.
	ReasonNodeHardwareUnknown = "NODE_HARDWARE_UNKNOWN"
	// ReasonTlsRequired: [FAILED_PRECONDITION] The port requires TLS but received clear text: use https://.
	ReasonTlsRequired = "TLS_REQUIRED"
	// ReasonClientCertificateRequired: [UNAUTHENTICATED] The port accepts only clients whose certificate was issued by the server's client authority.
	ReasonClientCertificateRequired = "CLIENT_CERTIFICATE_REQUIRED"
	// ReasonReplicaRebalancing: [UNAVAILABLE] This replica holds more than its share of agents. The agent is asked to move to another replica, and
	// keeps its stream until it has moved.
	ReasonReplicaRebalancing = "REPLICA_REBALANCING"
	// ReasonReplicaCutOff: [UNAVAILABLE] This replica cannot reach the store, but others can. The agent is asked to move to another replica.
	ReasonReplicaCutOff = "REPLICA_CUT_OFF"
	// ReasonCompressionNotSupported: [UNIMPLEMENTED] The port does not support this compression of messages. The header with the accepted encodings, such
	// as grpc-accept-encoding, names those that it supports.
	ReasonCompressionNotSupported = "COMPRESSION_NOT_SUPPORTED"
	// ReasonTooManyCalls: [RESOURCE_EXHAUSTED] This caller has reached its limit of concurrent calls (anonymous clients share one limit per
	// address); read the pending responses first. RetryInfo says when to try again.
	ReasonTooManyCalls = "TOO_MANY_CALLS"
	// ReasonNodeIDConfusable: [FAILED_PRECONDITION] A new node's id differs only in case from that of an existing node; metadata has the existing
	// id.
	ReasonNodeIDConfusable = "NODE_ID_CONFUSABLE"
	// ReasonHostNotAllowed: [PERMISSION_DENIED] A request that comes, or could come, from a browser names a host that is not a name of this
	// server. Configure the names in Listen.HostNames.
	ReasonHostNotAllowed = "HOST_NOT_ALLOWED"
	// ReasonLabelNotSetByOperator: [FAILED_PRECONDITION] A label to remove was set by the node itself or its join token: only operators' labels can be
	// removed.
	ReasonLabelNotSetByOperator = "LABEL_NOT_SET_BY_OPERATOR"
	// ReasonInvalidJob: [INVALID_ARGUMENT] The job is not valid; BadRequest names each violation with its field.
	ReasonInvalidJob = "INVALID_JOB"
	// ReasonJobNotFound: [NOT_FOUND] No job has this name.
	ReasonJobNotFound = "JOB_NOT_FOUND"
	// ReasonJobStopped: [FAILED_PRECONDITION] The job was stopped; submit it again to start it.
	ReasonJobStopped = "JOB_STOPPED"
	// ReasonJobHasNoCount: [FAILED_PRECONDITION] Jobs of this type run on every matching node and have no count.
	ReasonJobHasNoCount = "JOB_HAS_NO_COUNT"
	// ReasonJobFitsNowhere: [FAILED_PRECONDITION] No node fits the job, and the job has no queue timeout; metadata has the number of nodes for
	// each reason.
	ReasonJobFitsNowhere = "JOB_FITS_NOWHERE"
	// ReasonTooManyJobs: [RESOURCE_EXHAUSTED] The limit on jobs is reached.
	ReasonTooManyJobs = "TOO_MANY_JOBS"
	// ReasonExecutionNotFound: [NOT_FOUND] No execution has this id.
	ReasonExecutionNotFound = "EXECUTION_NOT_FOUND"
	// ReasonAmbiguousExecution: [FAILED_PRECONDITION] Several executions share this prefix; metadata names up to three: use a longer prefix.
	ReasonAmbiguousExecution = "AMBIGUOUS_EXECUTION"
	// ReasonExecutionEnded: [FAILED_PRECONDITION] The execution has ended.
	ReasonExecutionEnded = "EXECUTION_ENDED"
	// ReasonExecutionNotOrphaned: [FAILED_PRECONDITION] The store knows the execution, so there is nothing to adopt.
	ReasonExecutionNotOrphaned = "EXECUTION_NOT_ORPHANED"
	// ReasonNoScheduler: [FAILED_PRECONDITION] No scheduler has ever run, so nothing would move the work.
	ReasonNoScheduler = "NO_SCHEDULER"
	// ReasonNodeNotDraining: [FAILED_PRECONDITION] The node has no drain.
	ReasonNodeNotDraining = "NODE_NOT_DRAINING"
	// ReasonLogUnavailable: [UNAVAILABLE] The output of the execution cannot be read at the moment: its node is not connected or does not
	// respond. RetryInfo says when to try again.
	ReasonLogUnavailable = "LOG_UNAVAILABLE"
	// ReasonLogNotFound: [NOT_FOUND] The node no longer keeps output of the execution.
	ReasonLogNotFound = "LOG_NOT_FOUND"
	// ReasonJobCountIsZero: [FAILED_PRECONDITION] The job's count is 0, so an adopted execution would be stopped immediately: scale the job
	// first.
	ReasonJobCountIsZero = "JOB_COUNT_IS_ZERO"
	// ReasonServiceAccountTokenInvalid: [UNAUTHENTICATED] The token of a Kubernetes service account is not signed by the configured issuer, is for another
	// audience, or has expired.
	ReasonServiceAccountTokenInvalid = "SERVICE_ACCOUNT_TOKEN_INVALID"
	// ReasonServiceAccountNotAdmitted: [PERMISSION_DENIED] Machines cannot join with this Kubernetes service account: see Join.Kubernetes.ServiceAccounts.
	ReasonServiceAccountNotAdmitted = "SERVICE_ACCOUNT_NOT_ADMITTED"
	// ReasonAuditEntryDiffers: [FAILED_PRECONDITION] The audit log has no entry with this sequence and hash, so it is not the log that was
	// exported.
	ReasonAuditEntryDiffers = "AUDIT_ENTRY_DIFFERS"
	// ReasonWebhookNotFound: [NOT_FOUND] No webhook has this name.
	ReasonWebhookNotFound = "WEBHOOK_NOT_FOUND"
	// ReasonWebhookAddressRefused: [INVALID_ARGUMENT] Events cannot be posted to the URL of the webhook: it must be https, without user and fragment,
	// and resolve to a public address or one in Webhooks.AllowedNetworks.
	ReasonWebhookAddressRefused = "WEBHOOK_ADDRESS_REFUSED"
	// ReasonTooManyWebhooks: [FAILED_PRECONDITION] The limit on webhooks is reached: delete one first.
	ReasonTooManyWebhooks = "TOO_MANY_WEBHOOKS"
	// ReasonWebhookNotThatFar: [OUT_OF_RANGE] The webhook has not reached this revision of the log yet; metadata has the last revision that it
	// reached.
	ReasonWebhookNotThatFar = "WEBHOOK_NOT_THAT_FAR"
	// ReasonTooManyTargets: [RESOURCE_EXHAUSTED] There are more Prometheus targets than fit into one response: choose fewer nodes with a
	// selector.
	ReasonTooManyTargets = "TOO_MANY_TARGETS"
	// ReasonInvalidDeclaredState: [INVALID_ARGUMENT] The declared objects are not valid; the details name every problem.
	ReasonInvalidDeclaredState = "INVALID_DECLARED_STATE"
	// ReasonDeclaredByAnotherOwner: [FAILED_PRECONDITION] Some declared objects were applied by other owners; metadata has the first. Take them over,
	// or leave them out.
	ReasonDeclaredByAnotherOwner = "DECLARED_BY_ANOTHER_OWNER"
	// ReasonTooManyDeclaredObjects: [FAILED_PRECONDITION] The limit on stored declared objects is reached, or the call would change more objects than
	// one call can.
	ReasonTooManyDeclaredObjects = "TOO_MANY_DECLARED_OBJECTS"
	// ReasonOriginNotAllowed: [PERMISSION_DENIED] The request comes from a page of another server, or has no origin.
	ReasonOriginNotAllowed = "ORIGIN_NOT_ALLOWED"
	// ReasonConsoleNeedsTls: [FAILED_PRECONDITION] The console accepts no sign-in over clear text, except on the machine itself: use https.
	ReasonConsoleNeedsTls = "CONSOLE_NEEDS_TLS"
	// ReasonSignInCodeInvalid: [UNAUTHENTICATED] The sign-in code is unknown or has expired; metadata says which. Create another code.
	ReasonSignInCodeInvalid = "SIGN_IN_CODE_INVALID"
	// ReasonSignInCodeUsed: [FAILED_PRECONDITION] The sign-in code was already used. Create another code.
	ReasonSignInCodeUsed = "SIGN_IN_CODE_USED"
	// ReasonTooManySignInCodes: [RESOURCE_EXHAUSTED] The caller has reached the limit of unused sign-in codes; RetryInfo says when to try again.
	ReasonTooManySignInCodes = "TOO_MANY_SIGN_IN_CODES"
	// ReasonSignInFailed: [UNAUTHENTICATED] The issuer did not confirm the user's identity; metadata says why. Start again.
	ReasonSignInFailed = "SIGN_IN_FAILED"
	// ReasonSessionNotAllowed: [FAILED_PRECONDITION] The method cannot be called with a console session, or requires one.
	ReasonSessionNotAllowed = "SESSION_NOT_ALLOWED"
	// ReasonUpstreamUnavailable: [UNAVAILABLE] The console cannot reach the service that handles the call. RetryInfo says when to try again.
	ReasonUpstreamUnavailable = "UPSTREAM_UNAVAILABLE"
	// ReasonExecutionIDAhead: [FAILED_PRECONDITION] The execution cannot be adopted: the time in its id is in the future. Stop it instead.
	ReasonExecutionIDAhead = "EXECUTION_ID_AHEAD"
	// ReasonServiceBehind: [UNAVAILABLE] The service did not catch up with the log, or with the revision that the call names, within 5 s. Its
	// decision would use stale data. RetryInfo says when to try again.
	ReasonServiceBehind = "SERVICE_BEHIND"
	// ReasonJobEnded: [FAILED_PRECONDITION] The job has already completed or failed and cannot be stopped, scaled or restarted; metadata
	// has its state.
	ReasonJobEnded = "JOB_ENDED"
	// ReasonInvalidMinRevision: [INVALID_ARGUMENT] The header rollcall-min-revision is not a revision: a decimal number from 0 to
	// 9223372036854775807.
	ReasonInvalidMinRevision = "INVALID_MIN_REVISION"
	// ReasonMinRevisionAhead: [OUT_OF_RANGE] The header rollcall-min-revision names a revision that the log does not have yet; metadata has the
	// revision and the head of the log. The call had no effect. The log may have been restored to an earlier state:
	// discard the revision, and repeat the call.
	ReasonMinRevisionAhead = "MIN_REVISION_AHEAD"
	// ReasonJobVersionNotFound: [NOT_FOUND] The job has no such version, or no longer keeps it. Or the call named no version, and no earlier
	// version with another specification became ready. ListJobVersions returns the kept versions.
	ReasonJobVersionNotFound = "JOB_VERSION_NOT_FOUND"
	// ReasonJobVersionIsNewest: [FAILED_PRECONDITION] The job already has the specification of that version; metadata has its newest version. Name
	// another version.
	ReasonJobVersionIsNewest = "JOB_VERSION_IS_NEWEST"
	// ReasonJobActive: [FAILED_PRECONDITION] The job is ACTIVE and cannot be deleted. Stop it first.
	ReasonJobActive = "JOB_ACTIVE"
	// ReasonJobNotEnded: [FAILED_PRECONDITION] Some executions of the job have not ended, or their nodes have not confirmed that they ended;
	// metadata has the number of these executions. Delete the job once they have ended, or delete the nodes if they are
	// permanently gone.
	ReasonJobNotEnded = "JOB_NOT_ENDED"
	// ReasonQuotaExceeded: [RESOURCE_EXHAUSTED] The jobs of an owner would exceed a submitter's quota; metadata has the owner, the quota, its
	// limit, the current use and the use that would result. Stop, scale down or delete jobs, or ask an admin to raise the
	// quota.
	ReasonQuotaExceeded = "QUOTA_EXCEEDED"
	// ReasonJobUpdateHalted: [FAILED_PRECONDITION] The update to the job's newest version halted, and a restart would start that version
	// everywhere; metadata has this version and the last version that became ready. Revert the job, or submit it again.
	ReasonJobUpdateHalted = "JOB_UPDATE_HALTED"
	// ReasonRequestIDReused: [FAILED_PRECONDITION] The caller has used this request_id for another request of this method within the last day.
	// The call had no effect. Send a new id; repeat an id only with the same request.
	ReasonRequestIDReused = "REQUEST_ID_REUSED"
	// ReasonOneMessageRequired: [UNIMPLEMENTED] The method takes exactly one message, and the request has none or several.
	ReasonOneMessageRequired = "ONE_MESSAGE_REQUIRED"
	// ReasonCompressionNotNamed: [INTERNAL] A message of the request is marked as compressed, but the headers of the request name no encoding. gRPC
	// prescribes this code, although the mistake is the caller's.
	ReasonCompressionNotNamed = "COMPRESSION_NOT_NAMED"
)
