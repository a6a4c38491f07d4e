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

-- A step on a key of a part of a shard, or of what is only counted: one of another type is nobody's, and goes.
local function own(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then
    if not string.find(answer.err, 'WRONGTYPE', 1, true) then
      error(answer)
    end
    call('UNLINK', key)
    return call(command, key, ...)
  end
  return answer
end

-- The other keys of a shard are looked at before anything is written: one of another type is told, and nothing is half done.
local function look_at_keys(hashes, sets)
  for i = 1, #hashes do
    call('HLEN', prefix .. hashes[i])
  end
  for i = 1, #sets do
    call('ZCARD', prefix .. sets[i])
  end
end

-- A number as it is kept, or nil where that is none: from 2^53 on they are no longer told apart.
local function number_of(text)
  local number = text and tonumber(match(text, '^%d+$'))
  return number and number < 9007199254740992 and number
end

-- An instant in ms as it is told: there are none beyond.
local function instant_of(at)
  return text_of(math.max(-377705023201000, math.min(253402207200000, at)))
end

-- Lane, created, due, generation and unique key of a task, from the first line of its record or of what is known of its attempts. Nothing
-- where it is nobody's.
local function read_head(record)
  return match(record, '^([012]:%S+) (%d+) (%-?%d+) (%d+) ([^\n]*)')
end

local function head_of(record)
  local to = string.find(record, '\n', 1, true)
  return to and string.sub(record, 1, to - 1)
end

-- A record of which nothing can be read.
local function forget(task)
  call('HDEL', tasks, task)
  call('HDEL', attempts, task)
  call('ZREM', running, task)
  call('ZREM', prefix .. 'dead', task)
end

-- What is known of a task's attempts, of one that has been tried or moved. The first line: r for one that runs, d for one that is dead, w for one
-- that waits; the newest attempt and its fence, how many have failed and were lost, when it is due or '-' where that is as it was stored,
-- when the attempt began, the number of the step that began it, and by whom the attempt is made. The second is that of the task's
-- record. Then comes a line for each attempt that has ended.
local function read_state(text)
  local s = {}
  s.status, s.attempt, s.fence, s.failed, s.losses, s.due, s.began, s.number, s.holder, s.head, s.history =
    match(text, '^([rwd]) (%d+) (%d+) (%d+) (%d+) (%-?%d*) (%d+) (%d+) (%S+)\n([^\n]*)(.*)$')
  return s.status and s.due ~= '' and s
end

local function write_state(s)
  return concat({ s.status, s.attempt, s.fence, s.failed, s.losses, s.due, s.began, s.number, s.holder }, ' ') .. '\n' .. s.head .. s.history
end

-- Of a task that has not been tried or moved.
local function new_state(record)
  return { status = 'w', attempt = '0', fence = '0', failed = '0', losses = '0', due = '-', began = '0', number = '0', holder = '-', head = head_of(record) or '', history = '' }
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
  own('ZADD', prefix .. 'due:' .. lane .. ':' .. minute, at, task)
  own('ZADD', prefix .. 'minutes:' .. lane, minute, minute)
  call('ZADD', prefix .. 'lanes', 'LT', at, lane)
end

-- Finds when the first task of a lane is due, after some have left it. Minutes without tasks go.
local function look_at(lane)
  local minutes = prefix .. 'minutes:' .. lane
  while true do
    local minute = own('ZRANGE', minutes, '0', '0')[1]
    if not minute then
      call('ZREM', prefix .. 'lanes', lane)
      return nil
    end
    local first = own('ZRANGE', prefix .. 'due:' .. lane .. ':' .. minute, '0', '0', 'WITHSCORES')
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
  if type(rung) == 'table' and string.find(rung.err, 'WRONGTYPE', 1, true) then
    call('UNLINK', bell)
    rung = redis.pcall('RPUSH', bell, unpack(tokens))
  end
  if type(rung) == 'number' and rung > 16 then
    call('LTRIM', bell, '-16', '-1')
  end
end

-- A number in a hash rises; one that was none begins anew.
local function raise(key, field, by)
  local answer = redis.pcall('HINCRBY', key, field, by)
  if type(answer) == 'table' and (string.find(answer.err, 'integer', 1, true) or string.find(answer.err, 'overflow', 1, true)) then
    call('HDEL', key, field)
    return call('HINCRBY', key, field, by)
  end
  return type(answer) == 'number' and answer or own('HINCRBY', key, field, by)
end

local function count(what, by)
  raise(prefix .. 'counts', what, by)
end

-- One unfinished task of a generation less, or more.
local function unfinished(generation, by)
  if raise(prefix .. 'unfinished', generation, by) <= 0 then
    call('HDEL', prefix .. 'unfinished', generation)
  end
end

-- The unfinished task that has a unique key. One that is not known is nobody.
local function holder_of(unique)
  local task = call('HGET', prefix .. 'unique', unique)
  return task and call('HEXISTS', tasks, task) == 1 and task
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

local function part_of(number)
  return prefix .. 'ended:' .. text_of(number)
end

-- The first and the last of the parts in which what has ended is kept, and how many are in those before the last.
local function parts_of_ended()
  local known = own('HMGET', prefix .. 'ended', 'first', 'last', 'kept')
  local e = { first = number_of(known[1]) or 1, kept = number_of(known[3]) }
  e.last = number_of(known[2]) or e.first
  if e.first > e.last or e.last - e.first > 100000 then
    -- Nobody has kept so much.
    e.first = e.last
  end
  return e
end

-- What was not noted of them is counted.
local function kept_in(e)
  if not e.kept then
    e.kept = 0
    for part = e.first, e.last - 1 do
      e.kept = e.kept + own('HLEN', part_of(part))
    end
  end
  return e.kept
end

-- The last part grows no longer. Only that may fail where there is no memory, and then nothing has changed.
local function close_part(e, length)
  local kept, last = kept_in(e) + length, text_of(e.last + 1)
  local done = redis.pcall('HSET', prefix .. 'ended', 'last', last, 't' .. last, now_text, 'kept', text_of(kept))
  if type(done) == 'number' then
    e.last, e.kept = e.last + 1, kept
  end
  return type(done) == 'number'
end

-- The first part goes as a whole.
local function drop_part(e)
  local kept = math.max(0, kept_in(e) - own('HLEN', part_of(e.first)))
  call('UNLINK', part_of(e.first))
  call('HDEL', prefix .. 'ended', 't' .. text_of(e.first))
  e.first, e.kept = e.first + 1, kept
  call('HSET', prefix .. 'ended', 'first', text_of(e.first), 'kept', text_of(kept))
end

-- What has ended is kept without what it carries, in parts, of which the oldest goes as a whole when the others have enough.
-- `pairs` is each task with 'done' or 'cancelled', when it ended, and then what is known of its attempts.
local function keep_ended(pairs, most)
  if most == 0 or #pairs == 0 then
    return
  end
  local e = parts_of_ended()
  own('HSET', part_of(e.last), unpack(pairs))
  local length = call('HLEN', part_of(e.last))
  -- A tenth, but none too large to be read at once.
  if length >= math.min(1000, math.ceil(most / 10)) and close_part(e, length) then
    length = 0
  end
  while e.first < e.last and kept_in(e) + length > most do
    if kept_in(e) + length - own('HLEN', part_of(e.first)) < most then
      return
    end
    drop_part(e)
  end
end

-- What is kept of tasks that have ended: of each that is known the newest, of the parts after one or of all.
local function find_all_ended(names, after)
  local e, found = parts_of_ended(), {}
  for part = e.last, math.max(e.first, (after or 0) + 1), -1 do
    if #names == 0 then
      break
    end
    local records, left = own('HMGET', part_of(part), unpack(names)), {}
    for i = 1, #names do
      if records[i] then
        found[names[i]] = records[i]
      else
        left[#left + 1] = names[i]
      end
    end
    names = left
  end
  return found
end

-- 'done' or 'cancelled', when, and what is known of the attempts of one.
local function read_ended(record)
  local status, ended, state = match(record or '', '^(%a+) (%d+)\n(.*)$')
  local s = state and read_state(state)
  if s and read_head(s.head) and (status == 'done' or status == 'cancelled') then
    return status, ended, s
  end
end

-- The same of a task.
local function find_ended(task)
  return read_ended(find_all_ended({ task })[task])
end

-- Other lives of tasks that are forgotten, which had the same names.
local function forget_ended(names)
  local e = parts_of_ended()
  for part = e.first, e.last do
    local gone = own('HDEL', part_of(part), unpack(names))
    if gone > 0 and part < e.last then
      e.kept = math.max(0, kept_in(e) - gone)
      call('HSET', prefix .. 'ended', 'kept', text_of(e.kept))
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
    -- Only a hint: a user may lack the right to it.
    redis.pcall('PUBLISH', channel, 'due ' .. group .. ' ' .. text_of(first))
  end
end

-- What a process has said last, in a hash of such: a number, when that was, and lines. Nothing where it is nobody's.
local function read_said(name, process)
  local text = call('HGET', prefix .. name, process)
  local said, lines = match(text or '', '^(%d+) %d+(.*)$')
  said = number_of(said)
  return said, said and lines or ''
end

-- Takes out of such a hash what processes that have said nothing for a day have left.
local function forget_gone(name)
  local all = call('HGETALL', prefix .. name)
  for i = 1, #all, 2 do
    if now - (number_of(match(all[i + 1], '^%d+ (%d+)')) or 0) > 86400000 then
      call('HDEL', prefix .. name, all[i])
    end
  end
end
