-- submit: one subscriber wants jobs. Joins those that wait or run, queues the rest.
--
-- ARGV: subscriber, home, flow, ttl_ms, keep_ms, depth bound of this submission, submission (its id), rest (jobs in its
--       calls still to come),
--       then key, payload, priority, timeout_ms for each job.
-- Answer: queued, joined, keys whose result the subscriber has already ...
--         or -1, depth, excess: too deep by that many jobs for this call and the rest; nothing was changed.

local FIRST = 9
local RESERVED_MS = 60000

local subscriber, home, flow = ARGV[1], ARGV[2], ARGV[3]
local ttl, keep, max_depth = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local submission, rest = ARGV[7], tonumber(ARGV[8])
local reserved = root .. 'reserved'
local till = now + ttl
local life = ttl + keep

local function depth_with_reservations()
  local depth = redis.call('ZCARD', root .. 'waiting')
  local all = redis.call('HGETALL', reserved)
  for i = 1, #all, 2 do
    local count, ending = string.match(all[i + 1], '^(%d+) (%d+)$')
    if tonumber(ending) > now then
      depth = depth + tonumber(count)
    end
  end
  return depth
end

local function count_new()
  local jobs = {}
  for i = FIRST, #ARGV, 4 do
    jobs[#jobs + 1] = root .. 'job:' .. ARGV[i]
  end
  return #jobs - redis.call('EXISTS', unpack(jobs))
end

local holds_room = redis.call('HEXISTS', reserved, submission) == 1
if not holds_room then
  local depth = depth_with_reservations()
  local excess = depth + count_new() + rest - max_depth
  if excess > 0 then
    return { -1, depth, excess }
  end
end

redis.call('SET', root .. 'home:' .. subscriber, home, 'PX', string.format('%.0f', life))
if rest > 0 then
  redis.call('HSET', reserved, submission, string.format('%d %.0f', rest, now + RESERVED_MS))
  redis.call('PEXPIRE', reserved, RESERVED_MS)
elseif holds_room then
  redis.call('HDEL', reserved, submission)
end

local results = root .. 'results:' .. subscriber
local has_results = redis.call('EXISTS', results) == 1
local seq = math.max(now_us, tonumber(redis.call('HGET', root .. 'clock', 'seq') or 0) + 1)
local queued, joined, finished, pending = 0, 0, {}, {}

local function add_job(key, payload, priority)
  local job = root .. 'job:' .. key
  local line = line_of(priority, flow, subscriber)
  enter(key, line, priority, seq, life)
  redis.call('HSET', job, 'payload', payload, 'seq', seq, 'line', line, 'floor', -1024, 'till', till, 'attempt', 0)
  redis.call('PEXPIRE', job, string.format('%.0f', life))
  queued = queued + 1
end

local function join_job(key, line, floor, job_seq, job_till)
  local job = root .. 'job:' .. key
  if till > tonumber(job_till) then
    redis.call('HSET', job, 'till', till)
    outlive(job, life)
    if line == '' then
      outlive(root .. 'leases', life)
    else
      outlive_waiting(line, level_of(line), life)
    end
  end
  if line ~= '' then
    replace(key, line, floor, job_seq, keep)
  end
  joined = joined + 1
end

for i = FIRST, #ARGV, 4 do
  local key, priority = ARGV[i], tonumber(ARGV[i + 2])
  if has_results and redis.call('HEXISTS', results, key) == 1 then
    finished[#finished + 1] = key
  else
    local subs = root .. 'subs:' .. key
    local job = redis.call('HMGET', root .. 'job:' .. key, 'line', 'floor', 'seq', 'till')
    redis.call('HSET', subs, subscriber,
      string.format('%d %s %.0f %.0f ', priority, ARGV[i + 3], till, seq) .. flow)
    outlive(subs, life)
    if job[1] then
      join_job(key, job[1], job[2], job[3], job[4])
    else
      add_job(key, ARGV[i + 1], priority)
    end
    pending[#pending + 1] = key
    seq = seq + 1
  end
end

if #pending > 0 then
  redis.call('SADD', root .. 'pending:' .. subscriber, unpack(pending))
  outlive(root .. 'pending:' .. subscriber, life)
  redis.call('HSET', root .. 'clock', 'seq', seq)
  outlive(root .. 'clock', life)
  wake(queued)
end
return { queued, joined, unpack(finished) }
