import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { sendBearer } from "@rollcall/testkit";

/** How to connect to one address. */
export interface SecureOptions {
  readonly baseUrl: string;
  /** The authority of the server's certificate, in PEM. */
  readonly ca: string;
  readonly token: string;
  /** The name in the server's certificate, if it differs from the address. */
  readonly serverName?: string;
}

/** Clients for every service at one address, with gRPC over TLS. */
export interface SecureClients {
  readonly registry: Client<typeof RegistryService>;
  readonly events: Client<typeof EventService>;
  readonly health: Client<typeof HealthQueryService>;
  readonly admin: Client<typeof AdminService>;
  readonly audit: Client<typeof AuditService>;
  readonly jobs: Client<typeof JobService>;
  close(): void;
}

/** Create clients; they connect with their first call. */
export function openSecureClients({ baseUrl, ca, token, serverName }: SecureOptions): SecureClients {
  const nodeOptions = { ca, ...(serverName === undefined ? {} : { servername: serverName }) };
  const sessionManager = new Http2SessionManager(baseUrl, undefined, nodeOptions);
  const transport = createGrpcTransport({ baseUrl, sessionManager, interceptors: [sendBearer(token)] });
  const client = <S extends DescService>(service: S) => createClient(service, transport);
  return {
    registry: client(RegistryService),
    events: client(EventService),
    health: client(HealthQueryService),
    admin: client(AdminService),
    audit: client(AuditService),
    jobs: client(JobService),
    close: () => sessionManager.abort(),
  };
}
