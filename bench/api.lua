-- SPDX-License-Identifier: MIT
-- The requests of wrk for bench/api; prints its figures as one line of JSON.
-- Arguments: TOKEN, then "get" and the number of devices, or "list" and a path.

local headers, kind, count, path

function init(arguments)
  headers = { ["Authorization"] = "Bearer " .. arguments[1] }
  kind = arguments[2]
  if kind == "get" then count = tonumber(arguments[3]) else path = arguments[3] end
end

function request()
  if kind == "get" then
    return wrk.format("GET", string.format("/devices/d%d", math.random(0, count - 1)), headers)
  end
  return wrk.format("GET", path, headers)
end

function done(summary, latency)
  local faults = summary.errors
  io.write(string.format(
    '{"requests": %d, "microseconds": %d, "p50": %d, "p99": %d, "max": %d, "errors": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    faults.connect + faults.read + faults.write + faults.status + faults.timeout))
end
