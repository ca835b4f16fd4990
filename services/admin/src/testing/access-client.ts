import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { sendBearer } from "@rollcall/testkit";

/** Create an access client for a rig's port, by default without a token. */
export function accessClient({ baseUrl }: { readonly baseUrl: string }, token?: string): Client<typeof AccessService> {
  const interceptors = token === undefined ? [] : [sendBearer(token)];
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors });
  return createClient(AccessService, transport);
}
