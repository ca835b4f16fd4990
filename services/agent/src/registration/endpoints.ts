import { type Address, formatAddress, parseAddress } from "@rollcall/config";

/**
 * Complete the endpoints that a registration answers: an empty host (":7701") means the host by which the
 * registry was reached. What is no address is left out, and no address is there twice.
 */
export function resolveEndpoints(endpoints: readonly string[], server: Address): readonly string[] {
  const resolved = endpoints.flatMap((endpoint) => {
    const [, port] = /^:(\d{1,5})$/.exec(endpoint) ?? [];
    const whole = port === undefined ? endpoint : formatAddress({ host: server.host, port: Number(port) });
    const address = parseAddress(whole);
    return address === null || address.port === 0 ? [] : [formatAddress(address)];
  });
  return [...new Set(resolved)];
}
