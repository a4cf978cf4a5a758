-- Prepended to every script: the keys of a queue and what the scripts do with them.
--
-- KEYS[1] is the root, such as "lean-reward:{lean}:". The braces are a hash tag: in a cluster all keys of a queue share
-- one slot, so scripts may build the names below from the root.
--
-- job:$key               A hash. payload; seq: its place in time; level: where it waits, empty while it runs; floor: the
--                        priority it was raised to; till: when its last subscription ends (ms); attempt: claims so
--                        far; token, worker, timeout: its lease, absent while it waits.
-- subs:$key              A hash of subscriber -> terms, "priority timeout_ms till_ms seq flow".
-- pending:$subscriber    A set of the keys whose result the subscriber still waits for.
-- results:$subscriber    A hash of key -> "d" .. result (done) or "c" (crashed).
-- home:$subscriber       A string: the home that hears of its results.
-- deliveries:$home       A stream of s (subscriber), k (key), e (end, as in results).
-- cancels:$worker        A stream of t (token): leases that nobody wants any more.
-- waiting                A sorted set of all waiting keys by seq.
-- queue:$level           A sorted set of the waiting keys of one level, "$priority:$flow", by seq.
-- levels                 A sorted set of the levels with waiting keys, in the order in which they are served.
-- clock                  A hash. seq: the last one given out; $priority: the round that this priority is in.
-- leases                 A sorted set of the running keys by the end of their lease (ms).
-- wake                   A list of tokens, at most one for each waiting key; a worker without work pops one, then claims.
-- reserved               A hash of submission -> "count end_ms": depth set aside for submissions that take several calls.
-- workers, worker:$name  A sorted set of announced workers by the end of their announcement (ms), and what each said.
--
-- Order: a level's score is -priority * ROUNDS + round. Serving a level moves it to the next round; a level that enters
-- joins the round after the one being served. This is start-time fair queueing (Goyal, Vin and Cheng, 1996) where every
-- job costs 1, and the finish tag of a flow that comes back is that of a flow that was just served. Tags belong to levels
-- and not to jobs, so a flow that cancels its jobs owes nothing for them.
--
-- Out of memory, the server refuses commands that may grow, but not after a script's first write. Only submit is meant
-- to fail then (as a whole); all else makes room in the end, and calls may_grow first.

local ROUNDS = 2 ^ 42 -- a score stays an exact integer in a double: |priority| < 2 ^ 11
local WAKE_MS = 60000

local root = KEYS[1]
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

local function may_grow()
  redis.call('ZREM', root .. 'leases', '')
end

-- Lets a key live for ms more, never shorter than it would. Asked once a script for each key and time.
local lives = {}
local function outlive(key, ms)
  if (lives[key] or 0) < ms then
    if redis.call('PTTL', key) < ms then
      redis.call('PEXPIRE', key, string.format('%.0f', ms))
    end
    lives[key] = ms
  end
end

-- Marks a level as one with waiting keys.
local entered = {}
local function open_level(level, priority)
  if not entered[level] then
    local round = tonumber(redis.call('HGET', root .. 'clock', priority) or 0)
    redis.call('ZADD', root .. 'levels', 'NX', round + 1 - priority * ROUNDS, level)
    entered[level] = true
  end
end

-- Puts a key among the waiting; answers its level. life: for how long it matters (ms).
local function enter(key, priority, flow, seq, life)
  local level = string.format('%d:%s', priority, flow)
  redis.call('ZADD', root .. 'queue:' .. level, seq, key)
  redis.call('ZADD', root .. 'waiting', seq, key)
  open_level(level, priority)
  outlive(root .. 'queue:' .. level, life)
  outlive(root .. 'waiting', life)
  outlive(root .. 'levels', life)
  outlive(root .. 'clock', life)
  return level
end

local function leave(key, level)
  redis.call('ZREM', root .. 'queue:' .. level, key)
  redis.call('ZREM', root .. 'waiting', key)
  if redis.call('EXISTS', root .. 'queue:' .. level) == 0 then
    redis.call('ZREM', root .. 'levels', level)
    entered[level] = nil
  end
  lives = {} -- what became empty is gone, and would come back without its expiry
end

-- What the subscribers of a key want together: the highest priority (and the flow of the one who asked for it
-- first), the longest timeout and the latest end. nil: nobody is left.
local function wanted(key)
  local all = redis.call('HGETALL', root .. 'subs:' .. key)
  local best
  for i = 2, #all, 2 do
    local priority, timeout, till, seq, flow = string.match(all[i], '^(%S+) (%S+) (%S+) (%S+) (.*)$')
    priority, timeout, till, seq = tonumber(priority), tonumber(timeout), tonumber(till), tonumber(seq)
    if not best then
      best = { priority = priority, timeout = timeout, till = till, seq = seq, flow = flow }
    else
      if priority > best.priority or (priority == best.priority and seq < best.seq) then
        best.priority, best.seq, best.flow = priority, seq, flow
      end
      best.timeout = math.max(best.timeout, timeout)
      best.till = math.max(best.till, till)
    end
  end
  return best
end

local function life_until(till, keep)
  return math.max(till - now, 0) + keep
end

-- Moves a waiting key to where its subscribers, and its floor, want it.
local function replace(key, level, floor, seq, keep)
  local best = wanted(key)
  if not best then
    return
  end
  local priority = math.max(best.priority, tonumber(floor))
  if string.format('%d:%s', priority, best.flow) ~= level then
    leave(key, level)
    redis.call('HSET', root .. 'job:' .. key, 'level', enter(key, priority, best.flow, seq, life_until(best.till, keep)))
  end
end

-- Ends a job without a result. Who still waits for it stops waiting.
local function forget(key)
  for _, subscriber in ipairs(redis.call('HKEYS', root .. 'subs:' .. key)) do
    redis.call('SREM', root .. 'pending:' .. subscriber, key)
  end
  redis.call('DEL', root .. 'job:' .. key, root .. 'subs:' .. key)
end

-- Gives a job that ran back to the waiting, in its old place. Answers false when nobody wants it any more.
local function requeue(key, attempt, keep)
  local best = wanted(key)
  if not best or best.till <= now then
    forget(key)
    return false
  end
  local job = root .. 'job:' .. key
  local kept = redis.call('HMGET', job, 'floor', 'seq')
  local priority = math.max(best.priority, tonumber(kept[1]))
  local level = enter(key, priority, best.flow, kept[2], life_until(best.till, keep))
  redis.call('HSET', job, 'level', level, 'attempt', attempt)
  redis.call('HDEL', job, 'token', 'worker', 'timeout')
  return true
end

-- Tells one subscriber how a job ended, unless it was told or has left. ending: as in results.
local homes = {}
local function deliver(subscriber, key, ending, keep)
  if redis.call('SREM', root .. 'pending:' .. subscriber, key) == 0 then
    return
  end
  local results = root .. 'results:' .. subscriber
  redis.call('HSET', results, key, ending)
  outlive(results, keep)
  local home = homes[subscriber]
  if home == nil then
    home = redis.call('GET', root .. 'home:' .. subscriber)
    homes[subscriber] = home
  end
  if home then
    local stream = root .. 'deliveries:' .. home
    redis.call('XADD', stream, '*', 's', subscriber, 'k', key, 'e', ending)
    outlive(stream, keep)
  end
end

-- Sees to it that workers without work hear of waiting keys. added: how many were added. Called last by every script that
-- adds to or takes from the waiting. While any key waits there is a token, or a worker on its way that popped one; if that
-- worker dies, the next claim or reap of anyone puts a token back.
local function wake(added)
  local list = root .. 'wake'
  local depth = redis.call('ZCARD', root .. 'waiting')
  if depth == 0 then
    redis.call('DEL', list)
    return depth
  end
  local tokens = redis.call('LLEN', list)
  local more = math.min(added, depth - tokens)
  if tokens == 0 then
    more = math.max(more, 1)
  end
  if more > 0 then
    local new = {}
    for i = 1, more do
      new[i] = 1
    end
    redis.call('RPUSH', list, unpack(new))
    redis.call('PEXPIRE', list, WAKE_MS)
  end
  return depth
end

