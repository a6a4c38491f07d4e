-- Records how attempts ended.
-- ARGV: 1 how many that have ended are kept, 2 channel, 3 group; then in their order, for some that are done and alike: 'lane generation unique' of them, how many
--       they are, and for each: task, ' fence '; and for each other one: '', task, ' fence ', 'lane generation unique', 'retry', 'bury', 'cancelled'
--       or 'back', ms until the next attempt, how the attempt ended, error
-- Gives: for each 'taken' or 'late'
local most, answer = tonumber(ARGV[1]), {}
-- Of each: its task, fence and head, and where the rest of it stands.
local names, fences, heads, rest = {}, {}, {}, {}
local i = 4
while i <= #ARGV do
  local head, at = ARGV[i], #names
  if head == '' then
    names[at + 1], fences[at + 1], heads[at + 1], rest[at + 1] = ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], i + 4
    i = i + 8
  else
    local n = tonumber(ARGV[i + 1])
    for j = 1, n do
      names[at + j], fences[at + j], heads[at + j] = ARGV[i + 2 * j], ARGV[i + 2 * j + 1], head
    end
    i = i + 2 + 2 * n
  end
end
if #names == 0 then
  return answer
end
-- Changes nothing, and needs no memory: a server that has none lets a script finish what it has begun.
call('PERSIST', running)
look_at_keys({ 'tasks', 'unique', 'unfinished' }, { 'running', 'dead' })
local states = call('HMGET', attempts, unpack(names))
local before = earliest()
local asked = call('HLEN', prefix .. 'cancels') > 0
local over, ended, by_generation, counts, told = {}, {}, {}, {}, {}
local waits = false
local done, done_head = 0, 'done ' .. now_text .. '\n'
local last_head, lane, generation, unique
local function add(what)
  counts[what] = (counts[what] or 0) + 1
end
for n = 1, #names do
  local task, fence, state = names[n], fences[n], states[n]
  -- Of a running attempt the fence is the third word.
  local at = state and string.byte(state) == 114 and string.find(state, fence, 4, true)
  local is_its = at and at < 16 and not told[task]
  local how = rest[n]
  local s
  if is_its and how then
    -- Of one that is nobody's nothing can be written on.
    how, s = ARGV[how], read_state(state)
    is_its = s
  end
  if is_its then
    told[task] = fence
    if heads[n] ~= last_head then
      last_head = heads[n]
      lane, generation, unique = match(last_head, '^(%S+) (%d+) (.*)$')
    end
    local finished = true
    if asked then
      if how and how ~= 'cancelled' and call('HEXISTS', prefix .. 'cancels', task) == 1 then
        how = how == 'back' and 'cancelled' or how .. ' cancelled'
      end
      call('HDEL', prefix .. 'cancels', task)
    end
    if not how then
      done = done + 1
      over[#over + 1] = task
      ended[#ended + 1] = task
      ended[#ended + 1] = done_head .. state
    else
      local failed = match(how, '^retry') or match(how, '^bury')
      add_history(s, failed and not match(how, ' ') and ARGV[rest[n] + 2] or 'cancelled', failed and not match(how, ' ') and ARGV[rest[n] + 3] or '')
      call('ZREM', running, task)
      local cancelled = match(how, 'cancelled$')
      if failed and not cancelled then
        s.failed = text_of(s.failed + 1)
        add('failed')
      elseif how == 'back' then
        add('handed_back')
      end
      if cancelled then
        add('cancelled')
        over[#over + 1] = task
        ended[#ended + 1] = task
        ended[#ended + 1] = as_ended('cancelled', s)
      elseif how == 'bury' then
        bury(task, s)
      else
        local due = how == 'retry' and now + tonumber(ARGV[rest[n] + 1]) or now
        s.status, s.due = 'w', text_of(due)
        call('HSET', attempts, task, write_state(s))
        wait(lane, task, due)
        waits = true
        finished = false
      end
    end
    if finished then
      if unique ~= '' then
        free_unique(unique, task)
      end
      by_generation[generation] = (by_generation[generation] or 0) + 1
    end
    answer[n] = 'taken'
  elseif told[task] then
    answer[n] = told[task] == fence and 'taken' or 'late'
    if answer[n] == 'late' then
      add('late')
    end
  else
    -- Told before, its answer was lost?
    local s = state and read_state(state)
    if not s and call('HEXISTS', tasks, task) == 0 then
      local _, _, found = find_ended(task)
      s = found
    end
    -- One that was found to be lost has been given up: its worker told nothing before.
    local told_fence, ran = match(s and s.history or '', '\n%d+( %d+ )%d+ %d+ (%S+)[^\n]*$')
    local known = s and told_fence == fence and ran ~= 'lost'
    if s and s.status == 'r' and not state then
      -- It is done, and kept as it ran.
      known = ' ' .. s.fence .. ' ' == fence
    end
    answer[n] = known and 'taken' or 'late'
    if not known then
      add('late')
    end
  end
end
if #over > 0 then
  call('ZREM', running, unpack(over))
  call('HDEL', tasks, unpack(over))
  call('HDEL', attempts, unpack(over))
  keep_ended(ended, most)
end
if done > 0 then
  count('done', done)
end
if waits then
  tell_due(before, ARGV[2], ARGV[3])
end
for what, by in pairs(counts) do
  count(what, by)
end
for of, by in pairs(by_generation) do
  unfinished(of, -by)
end
return answer
