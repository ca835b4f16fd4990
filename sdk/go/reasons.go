// Code generated from the schema. DO NOT EDIT.

package rollcall

// Reasons of errors: what Error.Reason may be. A server of a later release may have further ones.
const (
	// ReasonInvalidRequest: [INVALID_ARGUMENT] Fields break their rules; BadRequest lists each violation.
	ReasonInvalidRequest = "INVALID_REQUEST"
	// ReasonInvalidNodeID: [INVALID_ARGUMENT] The node id is not 1-63 characters of [A-Za-z0-9._-] starting with a letter or digit.
	ReasonInvalidNodeID = "INVALID_NODE_ID"
	// ReasonInvalidLabel: [INVALID_ARGUMENT] A label breaks Kubernetes' syntax, or carries the protected prefix "rollcall.io/".
	ReasonInvalidLabel = "INVALID_LABEL"
	// ReasonInvalidSelector: [INVALID_ARGUMENT] A label selector cannot be parsed.
	ReasonInvalidSelector = "INVALID_SELECTOR"
	// ReasonInvalidPageToken: [INVALID_ARGUMENT] A page token was not made by this method with the same filter and order.
	ReasonInvalidPageToken = "INVALID_PAGE_TOKEN"
	// ReasonInvalidOrderBy: [INVALID_ARGUMENT] order_by names no sortable column.
	ReasonInvalidOrderBy = "INVALID_ORDER_BY"
	// ReasonInvalidPublicKey: [INVALID_ARGUMENT] A public key is not a raw Ed25519 key of 32 bytes, not in its canonical encoding, or a point of small order, for which
	// anyone can sign.
	ReasonInvalidPublicKey = "INVALID_PUBLIC_KEY"
	// ReasonNodeNotFound: [NOT_FOUND] No node has this id. As of every reason for a name that does not exist, metadata "suggestion" is the name that was most
	// likely meant, if one is close and the caller can list such objects.
	ReasonNodeNotFound = "NODE_NOT_FOUND"
	// ReasonAmbiguousNode: [FAILED_PRECONDITION] Several nodes share this prefix; the text names up to three.
	ReasonAmbiguousNode = "AMBIGUOUS_NODE"
	// ReasonNodeAlreadyApproved: [FAILED_PRECONDITION] The node is approved already.
	ReasonNodeAlreadyApproved = "NODE_ALREADY_APPROVED"
	// ReasonNodeAlreadyRejected: [FAILED_PRECONDITION] The node is rejected already.
	ReasonNodeAlreadyRejected = "NODE_ALREADY_REJECTED"
	// ReasonNodeRejected: [PERMISSION_DENIED] An operator rejected this node; the text carries the reason given.
	ReasonNodeRejected = "NODE_REJECTED"
	// ReasonNodeIsOrchestrator: [FAILED_PRECONDITION] A live control-plane process cannot be rejected or deleted.
	ReasonNodeIsOrchestrator = "NODE_IS_ORCHESTRATOR"
	// ReasonNodeAlreadyCordoned: [FAILED_PRECONDITION] The node is cordoned already.
	ReasonNodeAlreadyCordoned = "NODE_ALREADY_CORDONED"
	// ReasonNodeNotCordoned: [FAILED_PRECONDITION] The node is not cordoned.
	ReasonNodeNotCordoned = "NODE_NOT_CORDONED"
	// ReasonNodeAlreadyMarked: [FAILED_PRECONDITION] An operator marked the node unhealthy already.
	ReasonNodeAlreadyMarked = "NODE_ALREADY_MARKED"
	// ReasonNodeNotMarked: [FAILED_PRECONDITION] No operator's mark is on the node.
	ReasonNodeNotMarked = "NODE_NOT_MARKED"
	// ReasonEtagMismatch: [ABORTED] The node changed since the etag was read.
	ReasonEtagMismatch = "ETAG_MISMATCH"
	// ReasonNodeBanned: [PERMISSION_DENIED] An operator banned this node id or this key; the text carries the reason given. It may join when the ban is lifted.
	ReasonNodeBanned = "NODE_BANNED"
	// ReasonNodeAlreadyBanned: [FAILED_PRECONDITION] The node id and its key are banned already.
	ReasonNodeAlreadyBanned = "NODE_ALREADY_BANNED"
	// ReasonNodeNotBanned: [FAILED_PRECONDITION] No ban is on the node id or the key.
	ReasonNodeNotBanned = "NODE_NOT_BANNED"
	// ReasonNodeNotRegistered: [NOT_FOUND] The node must register before it may connect.
	ReasonNodeNotRegistered = "NODE_NOT_REGISTERED"
	// ReasonNodeDeleted: [NOT_FOUND] An operator deleted the node while it was connected.
	ReasonNodeDeleted = "NODE_DELETED"
	// ReasonNodeKeyMismatch: [PERMISSION_DENIED] The node id belongs to another key.
	ReasonNodeKeyMismatch = "NODE_KEY_MISMATCH"
	// ReasonNodeKeyInUse: [PERMISSION_DENIED] The key belongs to another node id.
	ReasonNodeKeyInUse = "NODE_KEY_IN_USE"
	// ReasonProofInvalid: [UNAUTHENTICATED] The proof is not a signature of this call and nonce by the node's key.
	ReasonProofInvalid = "PROOF_INVALID"
	// ReasonChallengeInvalid: [UNAUTHENTICATED] The nonce is unknown, too old, or was used before.
	ReasonChallengeInvalid = "CHALLENGE_INVALID"
	// ReasonNextKeyProofInvalid: [UNAUTHENTICATED] The next key of a rotation did not sign the same text as the key in use.
	ReasonNextKeyProofInvalid = "NEXT_KEY_PROOF_INVALID"
	// ReasonKeyRotationAlreadyRequired: [FAILED_PRECONDITION] The node has been told already to rotate its key, and has not done so yet.
	ReasonKeyRotationAlreadyRequired = "KEY_ROTATION_ALREADY_REQUIRED"
	// ReasonNodeKeyRetired: [UNAUTHENTICATED] The stream was opened with a key that the node has replaced since; open a new one with the present key.
	ReasonNodeKeyRetired = "NODE_KEY_RETIRED"
	// ReasonTokenMissing: [UNAUTHENTICATED] The call carries no access token.
	ReasonTokenMissing = "TOKEN_MISSING"
	// ReasonTokenInvalid: [UNAUTHENTICATED] The access token is unknown, malformed or too long, or an issuer made it, and it is not one for here: for another
	// audience, with a time out of range, or with an e-mail address that was not verified and that would decide who the caller is.
	ReasonTokenInvalid = "TOKEN_INVALID"
	// ReasonRoleTooLow: [PERMISSION_DENIED] The caller's role does not allow this method.
	ReasonRoleTooLow = "ROLE_TOO_LOW"
	// ReasonTokenExpired: [UNAUTHENTICATED] The token was good, and its time has passed.
	ReasonTokenExpired = "TOKEN_EXPIRED"
	// ReasonTokenRevoked: [UNAUTHENTICATED] The access token was good, and was revoked.
	ReasonTokenRevoked = "TOKEN_REVOKED"
	// ReasonAccessTokenNotFound: [NOT_FOUND] No access token has this id.
	ReasonAccessTokenNotFound = "ACCESS_TOKEN_NOT_FOUND"
	// ReasonAccessTokenAlreadyRevoked: [FAILED_PRECONDITION] The access token was revoked already.
	ReasonAccessTokenAlreadyRevoked = "ACCESS_TOKEN_ALREADY_REVOKED"
	// ReasonTooManyFailures: [RESOURCE_EXHAUSTED] Too many attempts with bad credentials came from this address; RetryInfo says when the next is looked at.
	ReasonTooManyFailures = "TOO_MANY_FAILURES"
	// ReasonRegistrationLimited: [RESOURCE_EXHAUSTED] Nodes register faster than the control plane is told to let them; RetryInfo says when to try again.
	ReasonRegistrationLimited = "REGISTRATION_LIMITED"
	// ReasonTooManyStreams: [RESOURCE_EXHAUSTED] This identity holds as many streams as it may; end one first. RetryInfo says when to try again.
	ReasonTooManyStreams = "TOO_MANY_STREAMS"
	// ReasonHelloRequired: [FAILED_PRECONDITION] The first frame of a heartbeat stream must be a Hello.
	ReasonHelloRequired = "HELLO_REQUIRED"
	// ReasonHelloRepeated: [FAILED_PRECONDITION] A heartbeat stream has exactly one Hello.
	ReasonHelloRepeated = "HELLO_REPEATED"
	// ReasonSessionSuperseded: [ABORTED] Another stream of the same node took a higher session epoch.
	ReasonSessionSuperseded = "SESSION_SUPERSEDED"
	// ReasonStreamStale: [DEADLINE_EXCEEDED] Nothing was received beyond the threshold; open a new stream.
	ReasonStreamStale = "STREAM_STALE"
	// ReasonPeerTooSlow: [RESOURCE_EXHAUSTED] The peer does not read what it is sent.
	ReasonPeerTooSlow = "PEER_TOO_SLOW"
	// ReasonRevisionCompacted: [OUT_OF_RANGE] Events after the revision asked for have been forgotten, or the log is another than that of the token; metadata has
	// compactedRevision, and listAfterRevision: list or watch again from there.
	ReasonRevisionCompacted = "REVISION_COMPACTED"
	// ReasonWatcherTooSlow: [RESOURCE_EXHAUSTED] The watcher does not keep up; metadata has the resumeToken to go on from.
	ReasonWatcherTooSlow = "WATCHER_TOO_SLOW"
	// ReasonInvalidResumeToken: [INVALID_ARGUMENT] A resume token was not made here, or the revision asked for is ahead of the log.
	ReasonInvalidResumeToken = "INVALID_RESUME_TOKEN"
	// ReasonSessionTokenInvalid: [UNAUTHENTICATED] The token of a unary session was not made by this cluster, or is another node's; open a session without one.
	ReasonSessionTokenInvalid = "SESSION_TOKEN_INVALID"
	// ReasonSequenceNotRising: [FAILED_PRECONDITION] The sequence of a unary heartbeat must be higher than that of the one before; metadata has the lastSequence.
	ReasonSequenceNotRising = "SEQUENCE_NOT_RISING"
	// ReasonServerShuttingDown: [UNAVAILABLE] The server is ending; connect again, there or elsewhere.
	ReasonServerShuttingDown = "SERVER_SHUTTING_DOWN"
	// ReasonStoreUnavailable: [UNAVAILABLE] The record cannot be reached just now.
	ReasonStoreUnavailable = "STORE_UNAVAILABLE"
	// ReasonOverloaded: [RESOURCE_EXHAUSTED] A queue is full; RetryInfo says when to try again.
	ReasonOverloaded = "OVERLOADED"
	// ReasonMessageTooLarge: [RESOURCE_EXHAUSTED] The message is larger than the limit.
	ReasonMessageTooLarge = "MESSAGE_TOO_LARGE"
	// ReasonUnknownMethod: [UNIMPLEMENTED] No such method here.
	ReasonUnknownMethod = "UNKNOWN_METHOD"
	// ReasonDeadlineExceeded: [DEADLINE_EXCEEDED] The call took longer than its deadline.
	ReasonDeadlineExceeded = "DEADLINE_EXCEEDED"
	// ReasonCancelled: [CANCELLED] The caller went away.
	ReasonCancelled = "CANCELLED"
	// ReasonMalformedMessage: [INVALID_ARGUMENT] The message cannot be decoded.
	ReasonMalformedMessage = "MALFORMED_MESSAGE"
	// ReasonInternal: [INTERNAL] A defect of Rollcall; the server's log has more under the request id.
	ReasonInternal = "INTERNAL"
	// ReasonIssuerUnavailable: [UNAVAILABLE] The OpenID Connect issuer of the token cannot be reached just now, so that it cannot be checked.
	ReasonIssuerUnavailable = "ISSUER_UNAVAILABLE"
	// ReasonJoinTokenRequired: [UNAUTHENTICATED] A new node must give a join token here.
	ReasonJoinTokenRequired = "JOIN_TOKEN_REQUIRED"
	// ReasonJoinTokenInvalid: [UNAUTHENTICATED] The join token is malformed, or no token of this cluster.
	ReasonJoinTokenInvalid = "JOIN_TOKEN_INVALID"
	// ReasonJoinTokenExpired: [PERMISSION_DENIED] The join token's time is over.
	ReasonJoinTokenExpired = "JOIN_TOKEN_EXPIRED"
	// ReasonJoinTokenRevoked: [PERMISSION_DENIED] An operator revoked the join token.
	ReasonJoinTokenRevoked = "JOIN_TOKEN_REVOKED"
	// ReasonJoinTokenUsedUp: [PERMISSION_DENIED] The join token has let in as many machines as it may.
	ReasonJoinTokenUsedUp = "JOIN_TOKEN_USED_UP"
	// ReasonJoinTokenNameMismatch: [PERMISSION_DENIED] The join token does not admit a node of this name; metadata has the pattern.
	ReasonJoinTokenNameMismatch = "JOIN_TOKEN_NAME_MISMATCH"
	// ReasonJoinTokenWrongCluster: [PERMISSION_DENIED] The join token was made by another cluster.
	ReasonJoinTokenWrongCluster = "JOIN_TOKEN_WRONG_CLUSTER"
	// ReasonJoinTokenNotFound: [NOT_FOUND] No join token has this id, or it has been forgotten.
	ReasonJoinTokenNotFound = "JOIN_TOKEN_NOT_FOUND"
	// ReasonJoinTokenAlreadyRevoked: [FAILED_PRECONDITION] The join token is revoked already.
	ReasonJoinTokenAlreadyRevoked = "JOIN_TOKEN_ALREADY_REVOKED"
	// ReasonHealthPolicyNotFound: [NOT_FOUND] No health policy is set for this scope.
	ReasonHealthPolicyNotFound = "HEALTH_POLICY_NOT_FOUND"
	// ReasonHealthPolicyContradiction: [INVALID_ARGUMENT] The values of a health policy contradict each other, alone or with the policies that they meet; the text names which.
	ReasonHealthPolicyContradiction = "HEALTH_POLICY_CONTRADICTION"
	// ReasonTooManyHealthPolicies: [FAILED_PRECONDITION] There are as many health policies of this kind as can be; delete one first.
	ReasonTooManyHealthPolicies = "TOO_MANY_HEALTH_POLICIES"
	// ReasonReplicaCredentialsInvalid: [UNAUTHENTICATED] The internal address of a replica answers other replicas of its cluster alone; metadata has the serverTimeMs.
	ReasonReplicaCredentialsInvalid = "REPLICA_CREDENTIALS_INVALID"
	// ReasonOwnerUnavailable: [UNAVAILABLE] The replica that holds the node's session does not answer just now; RetryInfo says when to try again.
	ReasonOwnerUnavailable = "OWNER_UNAVAILABLE"
	// ReasonBrakeGroupNotFound: [NOT_FOUND] No health replica counts nodes of this group of the brake; metadata has the groups that there are.
	ReasonBrakeGroupNotFound = "BRAKE_GROUP_NOT_FOUND"
	// ReasonBrakeAlreadyFrozen: [FAILED_PRECONDITION] The group's brake is frozen already; metadata says by whom.
	ReasonBrakeAlreadyFrozen = "BRAKE_ALREADY_FROZEN"
	// ReasonBrakeNotFrozen: [FAILED_PRECONDITION] The group's brake is not frozen, so that there is no freeze to lift.
	ReasonBrakeNotFrozen = "BRAKE_NOT_FROZEN"
	// ReasonBrakeClusterFrozen: [FAILED_PRECONDITION] The cluster's brake is frozen, which holds this group back too: release the cluster first.
	ReasonBrakeClusterFrozen = "BRAKE_CLUSTER_FROZEN"
	// ReasonNodeHardwareUnchanged: [FAILED_PRECONDITION] The node's hardware is what was accepted of it already.
	ReasonNodeHardwareUnchanged = "NODE_HARDWARE_UNCHANGED"
	// ReasonNodeHardwareUnknown: [FAILED_PRECONDITION] The node has not said yet what its hardware is.
	ReasonNodeHardwareUnknown = "NODE_HARDWARE_UNKNOWN"
	// ReasonTlsRequired: [FAILED_PRECONDITION] The port speaks TLS and was spoken to in clear text: use https://.
	ReasonTlsRequired = "TLS_REQUIRED"
	// ReasonClientCertificateRequired: [UNAUTHENTICATED] The port takes only clients with a certificate of the server's authority for clients.
	ReasonClientCertificateRequired = "CLIENT_CERTIFICATE_REQUIRED"
	// ReasonReplicaRebalancing: [UNAVAILABLE] This replica holds more agents than its share: the agent is asked to move to another one, and keeps its stream until then.
	ReasonReplicaRebalancing = "REPLICA_REBALANCING"
	// ReasonReplicaCutOff: [UNAVAILABLE] This replica cannot reach the record, and others can: the agent is asked to move to one of them.
	ReasonReplicaCutOff = "REPLICA_CUT_OFF"
	// ReasonCompressionNotSupported: [UNIMPLEMENTED] Messages to this port may not be compressed: send them with grpc-encoding identity.
	ReasonCompressionNotSupported = "COMPRESSION_NOT_SUPPORTED"
	// ReasonTooManyCalls: [RESOURCE_EXHAUSTED] This caller, or this address for callers that are not known, has as many calls under way as it may; read their
	// answers first. RetryInfo says when to try again.
	ReasonTooManyCalls = "TOO_MANY_CALLS"
	// ReasonNodeIDConfusable: [FAILED_PRECONDITION] A new node's id differs in case alone from that of a node that exists; metadata has the existing one.
	ReasonNodeIDConfusable = "NODE_ID_CONFUSABLE"
	// ReasonHostNotAllowed: [PERMISSION_DENIED] A request of a browser, or one that could be, names a host that is not this server's: configure it in Listen.HostNames.
	ReasonHostNotAllowed = "HOST_NOT_ALLOWED"
	// ReasonLabelNotSetByOperator: [FAILED_PRECONDITION] A label that is to be removed comes from the node itself or its join token: only operators' labels can be removed.
	ReasonLabelNotSetByOperator = "LABEL_NOT_SET_BY_OPERATOR"
	// ReasonInvalidJob: [INVALID_ARGUMENT] The job is not one that can run; BadRequest names each violation with its field.
	ReasonInvalidJob = "INVALID_JOB"
	// ReasonJobNotFound: [NOT_FOUND] There is no job of this name.
	ReasonJobNotFound = "JOB_NOT_FOUND"
	// ReasonJobStopped: [FAILED_PRECONDITION] The job was stopped; submit it again to start it.
	ReasonJobStopped = "JOB_STOPPED"
	// ReasonJobHasNoCount: [FAILED_PRECONDITION] Jobs of this type run on every matching node and have no count.
	ReasonJobHasNoCount = "JOB_HAS_NO_COUNT"
	// ReasonJobFitsNowhere: [FAILED_PRECONDITION] No node fits the job, and it has no queue timeout; metadata has the count of each reason.
	ReasonJobFitsNowhere = "JOB_FITS_NOWHERE"
	// ReasonTooManyJobs: [RESOURCE_EXHAUSTED] There are as many jobs, or executions of the job, as can be.
	ReasonTooManyJobs = "TOO_MANY_JOBS"
	// ReasonExecutionNotFound: [NOT_FOUND] No execution has this id.
	ReasonExecutionNotFound = "EXECUTION_NOT_FOUND"
	// ReasonAmbiguousExecution: [FAILED_PRECONDITION] Several executions share this prefix; metadata names up to three: use a longer prefix.
	ReasonAmbiguousExecution = "AMBIGUOUS_EXECUTION"
	// ReasonExecutionEnded: [FAILED_PRECONDITION] The execution has ended.
	ReasonExecutionEnded = "EXECUTION_ENDED"
	// ReasonExecutionNotOrphaned: [FAILED_PRECONDITION] The record knows the execution, so that there is nothing to adopt.
	ReasonExecutionNotOrphaned = "EXECUTION_NOT_ORPHANED"
	// ReasonNoScheduler: [FAILED_PRECONDITION] No scheduler has ever run: nothing would move the work.
	ReasonNoScheduler = "NO_SCHEDULER"
	// ReasonNodeNotDraining: [FAILED_PRECONDITION] The node is not drained.
	ReasonNodeNotDraining = "NODE_NOT_DRAINING"
	// ReasonLogUnavailable: [UNAVAILABLE] The output of the execution cannot be read just now: its node is not connected, or does not answer. RetryInfo says when to try again.
	ReasonLogUnavailable = "LOG_UNAVAILABLE"
	// ReasonLogNotFound: [NOT_FOUND] The node keeps no output of the execution any more.
	ReasonLogNotFound = "LOG_NOT_FOUND"
	// ReasonJobCountIsZero: [FAILED_PRECONDITION] The job wants no executions, so that one that is adopted would be stopped at once: scale it first.
	ReasonJobCountIsZero = "JOB_COUNT_IS_ZERO"
	// ReasonServiceAccountTokenInvalid: [UNAUTHENTICATED] The token of a Kubernetes service account is not signed by the configured issuer, is for another audience, or has expired.
	ReasonServiceAccountTokenInvalid = "SERVICE_ACCOUNT_TOKEN_INVALID"
	// ReasonServiceAccountNotAdmitted: [PERMISSION_DENIED] Machines may not join by this Kubernetes service account: see Join.Kubernetes.ServiceAccounts.
	ReasonServiceAccountNotAdmitted = "SERVICE_ACCOUNT_NOT_ADMITTED"
	// ReasonAuditEntryDiffers: [FAILED_PRECONDITION] The audit log has no entry of this sequence with this hash, so that it was not what was exported.
	ReasonAuditEntryDiffers = "AUDIT_ENTRY_DIFFERS"
	// ReasonWebhookNotFound: [NOT_FOUND] There is no webhook of this name.
	ReasonWebhookNotFound = "WEBHOOK_NOT_FOUND"
	// ReasonWebhookAddressRefused: [INVALID_ARGUMENT] The URL of a webhook is not one that events may be posted to: it must be https, without user and fragment, and lead to a public
	// address or one of Webhooks.AllowedNetworks.
	ReasonWebhookAddressRefused = "WEBHOOK_ADDRESS_REFUSED"
	// ReasonTooManyWebhooks: [FAILED_PRECONDITION] There are as many webhooks as can be: delete one first.
	ReasonTooManyWebhooks = "TOO_MANY_WEBHOOKS"
	// ReasonWebhookNotThatFar: [OUT_OF_RANGE] The webhook has not come to this revision of the log; metadata has the revision to which it has come.
	ReasonWebhookNotThatFar = "WEBHOOK_NOT_THAT_FAR"
	// ReasonTooManyTargets: [RESOURCE_EXHAUSTED] The targets for Prometheus are more than one answer may have: choose fewer nodes by a selector.
	ReasonTooManyTargets = "TOO_MANY_TARGETS"
	// ReasonInvalidDeclaredState: [INVALID_ARGUMENT] The objects that are declared cannot be: the details name all that is wrong with them.
	ReasonInvalidDeclaredState = "INVALID_DECLARED_STATE"
	// ReasonDeclaredByAnotherOwner: [FAILED_PRECONDITION] Objects that are declared were applied by other owners; metadata has the first. Take them over, or leave them out.
	ReasonDeclaredByAnotherOwner = "DECLARED_BY_ANOTHER_OWNER"
	// ReasonTooManyDeclaredObjects: [FAILED_PRECONDITION] As many declared objects are remembered as can be, or one call would change more nodes or policies than it may.
	ReasonTooManyDeclaredObjects = "TOO_MANY_DECLARED_OBJECTS"
	// ReasonOriginNotAllowed: [PERMISSION_DENIED] The request comes from a page of another server, or does not say where it comes from.
	ReasonOriginNotAllowed = "ORIGIN_NOT_ALLOWED"
	// ReasonConsoleNeedsTls: [FAILED_PRECONDITION] The console takes no sign-in over clear text, except on the machine itself: use https.
	ReasonConsoleNeedsTls = "CONSOLE_NEEDS_TLS"
	// ReasonSignInCodeInvalid: [UNAUTHENTICATED] The code to sign in with is unknown or has expired; metadata says which. Make another.
	ReasonSignInCodeInvalid = "SIGN_IN_CODE_INVALID"
	// ReasonSignInCodeUsed: [FAILED_PRECONDITION] The code to sign in with was used before. Make another.
	ReasonSignInCodeUsed = "SIGN_IN_CODE_USED"
	// ReasonTooManySignInCodes: [RESOURCE_EXHAUSTED] As many codes of the caller wait to be used as may; RetryInfo says when to try again.
	ReasonTooManySignInCodes = "TOO_MANY_SIGN_IN_CODES"
	// ReasonSignInFailed: [UNAUTHENTICATED] The issuer did not confirm who signs in; metadata says why. Begin again.
	ReasonSignInFailed = "SIGN_IN_FAILED"
	// ReasonSessionNotAllowed: [FAILED_PRECONDITION] What is called is not for a session of the console, or for nothing else.
	ReasonSessionNotAllowed = "SESSION_NOT_ALLOWED"
	// ReasonUpstreamUnavailable: [UNAVAILABLE] The console cannot reach the service that the call is for. RetryInfo says when to try again.
	ReasonUpstreamUnavailable = "UPSTREAM_UNAVAILABLE"
	// ReasonExecutionIDAhead: [FAILED_PRECONDITION] The execution cannot be adopted: the time in its id is still to come. Stop it instead.
	ReasonExecutionIDAhead = "EXECUTION_ID_AHEAD"
	// ReasonServiceBehind: [UNAVAILABLE] The service did not read the log up to the present, or up to the revision that the call names, within 5 s. It would decide
	// on stale data. RetryInfo says when to try again.
	ReasonServiceBehind = "SERVICE_BEHIND"
	// ReasonJobEnded: [FAILED_PRECONDITION] The job has completed or failed already: nothing of it can be stopped, scaled or restarted; metadata has its state.
	ReasonJobEnded = "JOB_ENDED"
	// ReasonInvalidMinRevision: [INVALID_ARGUMENT] The header rollcall-min-revision is no revision: a decimal number from 0 to 9223372036854775807.
	ReasonInvalidMinRevision = "INVALID_MIN_REVISION"
	// ReasonMinRevisionAhead: [OUT_OF_RANGE] The header rollcall-min-revision names a revision that the log does not have; metadata has the revision and the head of
	// the log. The call had no effect. The log may have been restored to an earlier state: forget the revision, and repeat the call.
	ReasonMinRevisionAhead = "MIN_REVISION_AHEAD"
	// ReasonJobVersionNotFound: [NOT_FOUND] The job has no such version, or it is no longer kept; or no version was named, and no earlier one with another specification
	// became ready. ListJobVersions answers the versions that are kept.
	ReasonJobVersionNotFound = "JOB_VERSION_NOT_FOUND"
	// ReasonJobVersionIsNewest: [FAILED_PRECONDITION] The job has the specification of that version already; metadata has its newest version. Name another version.
	ReasonJobVersionIsNewest = "JOB_VERSION_IS_NEWEST"
	// ReasonJobActive: [FAILED_PRECONDITION] The job is ACTIVE and cannot be deleted. Stop it first.
	ReasonJobActive = "JOB_ACTIVE"
	// ReasonJobNotEnded: [FAILED_PRECONDITION] Executions of the job have not ended, or their nodes have not confirmed it; metadata has their number. Delete the job
	// when they have, or delete the nodes if these are gone for good.
	ReasonJobNotEnded = "JOB_NOT_ENDED"
	// ReasonQuotaExceeded: [RESOURCE_EXHAUSTED] The jobs of an owner would use more than a submitter's can; metadata has the owner, the quota, its limit, what is used, and
	// what would be. Stop, scale down or delete jobs, or have an admin raise the quota.
	ReasonQuotaExceeded = "QUOTA_EXCEEDED"
)
