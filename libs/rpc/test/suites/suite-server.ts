import type { DescService } from "@bufbuild/protobuf";
import { TlsSource } from "@rollcall/identity";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { createGrpcServer, createRpcServer } from "../../src/index.ts";
import { openPolicies, type SuiteHandlers, toConnect, toFrames } from "./suite-calls.ts";

export interface SuiteServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface SuiteServerOptions {
  /** The port of the product whose server serves the suite. */
  readonly port: "api" | "agents";
  readonly service: DescService;
  readonly handlers: SuiteHandlers;
  /** The files to serve TLS with; null for clear text. */
  readonly tls: {
    readonly certFile: string;
    readonly keyFile: string;
    readonly clientCaFile: string | undefined;
  } | null;
}

/** Serve a suite's service with the server of a port of the product. */
export async function startSuiteServer({ port, service, handlers, tls }: SuiteServerOptions): Promise<SuiteServer> {
  const log = silentLogger;
  const source = tls === null ? {} : { tls: await TlsSource.open({ files: tls, clock: systemClock, log }) };
  const common = { host: "127.0.0.1", port: 0, log, metrics: createMetrics({ defaults: false }), ...source };
  return port === "agents"
    ? createGrpcServer({ ...common, routes: [toFrames(service, handlers)] })
    : createRpcServer({
        ...common,
        services: [service],
        policies: openPolicies(service),
        routes: (router) => router.service(service, toConnect(service, handlers)),
        authenticate: async () => null,
      });
}
