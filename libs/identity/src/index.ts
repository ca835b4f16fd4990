export {
  ANONYMOUS,
  type Authenticator,
  actorOf,
  bearerOf,
  type Caller,
  type IdentifiedCaller,
  isRole,
  LONGEST_TOKEN,
  type ReplicaAuthenticator,
  type Role,
  roleSuffices,
} from "./caller.ts";
export { checkChallenge, createChallenge, NONCE_BYTES, NONCE_TTL_MS } from "./cluster-nonce.ts";
export {
  generateKeyPair,
  keyFingerprint,
  keyPairFromPem,
  type NodeKeyPair,
  privateKeyToPem,
  signProof,
  verifyProof,
  verifyProofAside,
} from "./identity-proof.ts";
export { checkReplicaCall, REPLICA_CREDENTIALS_TTL_MS, signReplicaCall } from "./replica-credentials.ts";
export {
  AUTHORITY_PATH,
  AuthorityError,
  type AuthorityServer,
  certificateOf,
  fetchAuthorities,
  fetchAuthority,
  findPath,
  fingerprintOf,
  parseFingerprint,
} from "./tls/authority.ts";
export { AuthorityFile } from "./tls/authority-file.ts";
export { type ClientTls, readClientTls } from "./tls/client-tls.ts";
export { certificatesIn, MOST_AUTHORITIES, TlsFileError, type TlsFiles } from "./tls/tls-files.ts";
export { TlsSource } from "./tls/tls-source.ts";
export { authoritiesOf, isRoot } from "./tls/trust-path.ts";
