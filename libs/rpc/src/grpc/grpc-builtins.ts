import { create, type DescService, type Message } from "@bufbuild/protobuf";
import type { ServerDuplexStream, UntypedServiceImplementation } from "@grpc/grpc-js";
import { Health as GrpcHealth, HealthCheckResponseSchema } from "@rollcall/api/grpc/health/v1/health_pb";
import { checkServing, watchServing } from "../builtins/health-service.ts";
import { type ReflectionService, reflectionServices } from "../builtins/reflection-service.ts";
import type { ServingStatus } from "../builtins/serving-status.ts";
import { toGrpcStatus } from "./grpc-error.ts";
import { type GrpcRoute, grpcRoute } from "./grpc-handlers.ts";

/** Serve grpc.health.v1 on a grpc-js server. */
export function grpcHealthRoute(serving: ServingStatus): GrpcRoute {
  return grpcRoute(GrpcHealth, {
    check: ({ request }, answer) => {
      try {
        const status = checkServing(serving, request.service);
        answer(null, create(HealthCheckResponseSchema, { status }));
      } catch (error) {
        answer(toGrpcStatus(error));
      }
    },
    watch: (call) => {
      const stop = watchServing(serving, call.request.service, (status) => {
        // Ignore whether the watcher reads: statuses change only a few times in the life of a process, so
        // little is buffered.
        call.write(create(HealthCheckResponseSchema, { status }));
      });
      call.on("close", stop);
      call.on("cancelled", stop);
    },
  });
}

/** Serve reflection, v1 and v1alpha, on a grpc-js server. It describes these services and itself. */
export function grpcReflectionRoutes(services: readonly DescService[]): readonly GrpcRoute[] {
  return reflectionServices(services).map((reflection) => ({
    service: reflection.service,
    handlers: reflectionHandlers(reflection),
    decoders: {},
    frames: {},
  }));
}

function reflectionHandlers({ answer }: ReflectionService): UntypedServiceImplementation {
  return {
    serverReflectionInfo: (call: ServerDuplexStream<Message, Message>) => {
      call.on("data", (request: Message) => {
        if (call.write(answer(request))) return;
        call.pause();
        call.once("drain", () => call.resume());
      });
      call.on("end", () => call.end());
    },
  };
}
