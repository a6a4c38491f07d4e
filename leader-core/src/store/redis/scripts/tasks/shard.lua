-- Stands before the scripts of tasks: what is kept of a shard, and where.
-- KEYS: 1 the shard's tasks; the names of all else follow from its name
--   tasks       hash: task -> lane, when it was stored, when it is due, generation, unique key, and from the next line on what it carries
--   attempts    hash: task -> what is known of its attempts, see `read_state`
--   lanes       sorted set: lane, by when its first task is due · minutes:<lane>, due:<lane>:<minute>: the tasks that wait for their time
--   stream:<lane>   due tasks that nobody has begun, read by the group `workers` · bell:<task>   who waits is woken · running   sorted set: when each was heard of
--   dead        sorted set: when each has died · ended, ended:<part>   hashes: what is done or was cancelled
--   seen        set: the lanes that have a stream
--   unique, once, cancels, producers, takes, unfinished, counts   hashes · generation   the newest that is known
local call, format, match, concat = redis.call, string.format, string.match, table.concat
local prefix = string.sub(KEYS[1], 1, -6)
local tasks, attempts, running = KEYS[1], prefix .. 'attempts', prefix .. 'running'
local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)

local function text_of(number)
  return format('%.0f', number)
end
local now_text = text_of(now)

-- Lane, created, due, generation and unique key of a task, from the first line of its record or of what is known of its attempts.
local function read_head(record)
  return match(record, '^(%S+) (%d+) (%-?%d+) (%d+) ([^\n]*)')
end

local function head_of(record)
  return string.sub(record, 1, string.find(record, '\n', 1, true) - 1)
end

-- What is known of a task's attempts, of one that has been tried or moved. The first line: r for one that runs, d for one that is dead, w for one
-- that waits; the newest attempt and its fence, how many have failed and were lost, when it is due or '-' where that is as it was stored,
-- when the attempt began, the number of the step that began it, and by whom the attempt is made. The second is that of the task's
-- record. Then comes a line for each attempt that has ended.
local function read_state(text)
  local s = {}
  s.status, s.attempt, s.fence, s.failed, s.losses, s.due, s.began, s.number, s.holder, s.head, s.history =
    match(text, '^(%a) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%S+)\n([^\n]*)(.*)$')
  return s.status and s
end

local function write_state(s)
  return concat({ s.status, s.attempt, s.fence, s.failed, s.losses, s.due, s.began, s.number, s.holder }, ' ') .. '\n' .. s.head .. s.history
end

-- Of a task that has not been tried or moved.
local function new_state(record)
  return { status = 'w', attempt = '0', fence = '0', failed = '0', losses = '0', due = '-', began = '0', number = '0', holder = '-', head = head_of(record), history = '' }
end

-- Adds the end of the present attempt, and keeps the newest ten.
local function add_history(s, ran, error, ended)
  s.history = s.history .. '\n' .. concat({ s.attempt, s.fence, s.began, ended or now_text, ran, s.holder, error }, ' ')
  local _, lines = string.gsub(s.history, '\n', '')
  for _ = 11, lines do
    s.history = match(s.history, '^\n[^\n]*(.*)$')
  end
end

local function bucket(lane, due)
  return prefix .. 'due:' .. lane .. ':' .. text_of(math.floor(due / 60000))
end

-- Puts a task where it waits for its time.
local function wait(lane, task, due)
  local minute, at = text_of(math.floor(due / 60000)), text_of(due)
  call('ZADD', prefix .. 'due:' .. lane .. ':' .. minute, at, task)
  call('ZADD', prefix .. 'minutes:' .. lane, minute, minute)
  call('ZADD', prefix .. 'lanes', 'LT', at, lane)
end

-- Finds when the first task of a lane is due, after some have left it. Minutes without tasks go.
local function look_at(lane)
  local minutes = prefix .. 'minutes:' .. lane
  while true do
    local minute = call('ZRANGE', minutes, '0', '0')[1]
    if not minute then
      call('ZREM', prefix .. 'lanes', lane)
      return nil
    end
    local first = call('ZRANGE', prefix .. 'due:' .. lane .. ':' .. minute, '0', '0', 'WITHSCORES')
    if first[2] then
      local due = tonumber(first[2])
      call('ZADD', prefix .. 'lanes', text_of(due), lane)
      return due
    end
    call('ZREM', minutes, minute)
  end
end

-- When the first task of the shard is due.
local function earliest()
  local first = call('ZRANGE', prefix .. 'lanes', '0', '0', 'WITHSCORES')
  return first[2] and tonumber(first[2])
end

-- Wakes who waits for tasks of a lane, at most so many.
local function ring(lane, times)
  local bell = prefix .. 'bell:' .. string.sub(lane, 3)
  local tokens = {}
  for i = 1, math.min(times, 16) do
    tokens[i] = '1'
  end
  -- Only a hint: a server without memory for it takes what else is done.
  local rung = redis.pcall('RPUSH', bell, unpack(tokens))
  if type(rung) == 'number' and rung > 16 then
    call('LTRIM', bell, '-16', '-1')
  end
end

local function count(what, by)
  call('HINCRBY', prefix .. 'counts', what, by)
end

-- One unfinished task of a generation less, or more.
local function unfinished(generation, by)
  if call('HINCRBY', prefix .. 'unfinished', generation, by) <= 0 then
    call('HDEL', prefix .. 'unfinished', generation)
  end
end

-- The unique key is free where it is still this task's.
local function free_unique(unique, task)
  if unique ~= '' and call('HGET', prefix .. 'unique', unique) == task then
    call('HDEL', prefix .. 'unique', unique)
  end
end

-- The task will not be tried again by itself.
local function bury(task, s)
  s.status = 'd'
  call('HSET', attempts, task, write_state(s))
  call('ZADD', prefix .. 'dead', now_text, task)
  count('dead', 1)
end

-- What has ended is kept without what it carries, in parts, of which the oldest goes as a whole.
-- `pairs` is each task with 'done' or 'cancelled', when it ended, and then what is known of its attempts.
local function keep_ended(pairs, most)
  if most == 0 or #pairs == 0 then
    return
  end
  -- A tenth, but none too large to be read at once.
  local size = math.min(1000, math.ceil(most / 10))
  local parts = call('HMGET', prefix .. 'ended', 'first', 'last')
  local first, last = tonumber(parts[1]) or 1, tonumber(parts[2]) or 1
  call('HSET', prefix .. 'ended:' .. last, unpack(pairs))
  if call('HLEN', prefix .. 'ended:' .. last) < size then
    return
  end
  last = last + 1
  call('HSET', prefix .. 'ended', 'last', last, 't' .. last, now_text)
  while last - first > math.ceil(most / size) do
    call('UNLINK', prefix .. 'ended:' .. first)
    call('HDEL', prefix .. 'ended', 't' .. first)
    first = first + 1
    call('HSET', prefix .. 'ended', 'first', first)
  end
end

-- A task that has ended: 'done' or 'cancelled', when, and what is known of its attempts.
local function find_ended(task)
  local parts = call('HMGET', prefix .. 'ended', 'first', 'last')
  for part = tonumber(parts[2]) or 1, tonumber(parts[1]) or 1, -1 do
    local record = call('HGET', prefix .. 'ended:' .. part, task)
    if record then
      local status, ended, state = match(record, '^(%a+) (%d+)\n(.*)$')
      return status, ended, read_state(state)
    end
  end
end

local function as_ended(status, s)
  -- One that was done is kept as it ran.
  s.status = 'w'
  return status .. ' ' .. now_text .. '\n' .. write_state(s)
end

-- Tells the dispatcher that the first task of the shard is due earlier than before.
local function tell_due(before, channel, group)
  local first = earliest()
  if first and (not before or first < before) then
    call('PUBLISH', channel, 'due ' .. group .. ' ' .. text_of(first))
  end
end

-- Takes out of a hash what processes that are long gone have left: its values have the time behind a number.
local function forget_gone(name)
  local all = call('HGETALL', prefix .. name)
  for i = 1, #all, 2 do
    if now - (tonumber(match(all[i + 1], '^%d+ (%d+)')) or 0) > 86400000 then
      call('HDEL', prefix .. name, all[i])
    end
  end
end
