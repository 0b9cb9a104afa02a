using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "react", worker = .worker)],
  sockets = [(name = "http", http = (), service = "react")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
);
