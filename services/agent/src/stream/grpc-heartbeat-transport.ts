import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type ChannelOptions, Client, credentials, status } from "@grpc/grpc-js";
import {
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { HeartbeatStream, HeartbeatTransport, StreamListener } from "./heartbeat-transport.ts";
import { HEARTBEAT_METHOD } from "./hello.ts";

const CHANNEL_OPTIONS: ChannelOptions = {
  // Channels share connections by default; leaving a dead path needs a new one.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_retries": 0,
  "grpc.max_receive_message_length": 1024 * 1024,
};

/** Create the transport over grpc-js in clear text. */
export function createGrpcHeartbeatTransport(): HeartbeatTransport {
  return {
    open: (endpoint, listener) => {
      try {
        const client = new Client(endpoint, credentials.createInsecure(), CHANNEL_OPTIONS);
        return openStream(client, listener);
      } catch (error) {
        // An endpoint that is no address at all is one that cannot be reached.
        setImmediate(() => listener.onEnd(error));
        return { send: () => {}, finish: () => {}, cancel: () => {} };
      }
    },
  };
}

function openStream(client: Client, listener: StreamListener): HeartbeatStream {
  const call = client.makeBidiStreamRequest<HeartbeatRequest, HeartbeatResponse>(
    HEARTBEAT_METHOD,
    (request) => Buffer.from(toBinary(HeartbeatRequestSchema, request)),
    (bytes) => fromBinary(HeartbeatResponseSchema, bytes),
  );
  let ended = false;
  let failure: unknown;
  call.on("data", (response: HeartbeatResponse) => listener.onFrame(response));
  call.on("error", (error) => {
    failure = error;
  });
  call.on("status", ({ code, details }) => {
    ended = true;
    // Frames that came before the status may still be in the stream's buffer: they are heard first.
    setImmediate(() => {
      client.close();
      const unknown = new Error(`the stream ended with status ${code}: ${details}`);
      listener.onEnd(code === status.OK ? undefined : (failure ?? unknown));
    });
  });
  return {
    send: (request) => void (ended || call.write(request)),
    finish: () => void (ended || call.end()),
    cancel: () => call.cancel(),
  };
}
